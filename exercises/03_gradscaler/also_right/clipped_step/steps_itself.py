"""Looks at the norm and makes the optimizer step itself; update still hears of the overflow from unscale_."""

import math

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(list(parameters), max_norm).item()
    if math.isfinite(norm):
        optimizer.step()
    scaler.update()
    return norm
