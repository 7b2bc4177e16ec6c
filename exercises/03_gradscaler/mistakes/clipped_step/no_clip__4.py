"""It works for a list of parameters and not for a generator: the second time that you walk over `parameters` nothing is
left of it, so a norm of 0 is measured and nothing is clipped. Look at how often you iterate over it.
"""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    finite = all(bool(p.grad.isfinite().all()) for p in parameters if p.grad is not None)
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    scaler.step(optimizer)
    scaler.update()
    return float(norm) if finite else float("inf")
