"""After an overflow your code leaves the step without telling the scaler that it is over, so the scale does not fall
and the next call finds what was noted about this one. Look at what 4 consists of, and when each half of it is
called.
"""

import math

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm).item()
    if math.isfinite(norm):
        scaler.step(optimizer)
        scaler.update()
    return norm
