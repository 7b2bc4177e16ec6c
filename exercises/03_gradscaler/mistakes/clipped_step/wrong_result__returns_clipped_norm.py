"""The update is right, but you return the norm of what clipping left, which never exceeds max_norm. Look at the moment
when the norm is taken: the one asked for says how long the true gradients were before.
"""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    parameters = list(parameters)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    scaler.step(optimizer)
    scaler.update()
    return float(norm)
