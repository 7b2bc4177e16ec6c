"""Lets clip_grad_norm_ complain about an overflow."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    try:
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, max_norm, error_if_nonfinite=True))
    except RuntimeError:
        norm = float("inf")
    scaler.step(optimizer)
    scaler.update()
    return norm
