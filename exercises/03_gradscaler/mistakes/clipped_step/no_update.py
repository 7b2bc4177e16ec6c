"""One call works and the next one does not: the scaler was never told that the step is over, so it still holds what it
noted about this one, and its scale cannot change. Look at what 4 consists of.
"""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    scaler.step(optimizer)
    return float(norm)
