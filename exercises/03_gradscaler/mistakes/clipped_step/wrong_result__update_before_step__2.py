"""."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    scaler.update()
    scaler.step(optimizer)
    scaler.update()
    return float(norm)
