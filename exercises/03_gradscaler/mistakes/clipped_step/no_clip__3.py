"""It works for a list of parameters and not for a generator: the second time that you walk over `parameters` nothing is
left of it, so nothing is clipped. Look at how often you iterate over it.
"""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    torch.nn.utils.clip_grads_with_norm_(parameters, max_norm, norm)
    scaler.step(optimizer)
    scaler.update()
    return norm.item()
