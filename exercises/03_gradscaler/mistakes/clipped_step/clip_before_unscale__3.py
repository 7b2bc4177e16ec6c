"""."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scale = scaler.get_scale()
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm / scale)
    scaler.step(optimizer)
    scaler.update()
    return float(norm / scale)
