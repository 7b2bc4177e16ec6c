"""The scaler was asked to step twice for one update, which it refuses. Its step (4) makes the optimizer step itself, or
decides that it must not; look for the second one.
"""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    scaler.step(optimizer)
    scaler.step(optimizer)
    scaler.update()
    return float(norm)
