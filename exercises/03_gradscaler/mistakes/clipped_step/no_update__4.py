"""After an overflow your code leaves the step without telling the scaler that it is over, so the scale does not fall.
Look at what 4 consists of, and when each half of it is called.
"""

import math

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scale = scaler.get_scale()
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm * scale).item() / scale
    if not math.isfinite(norm):
        return norm
    scaler.step(optimizer)
    scaler.update()
    return norm
