"""The scale stays what it was at the beginning, through overflows and through steps that went well: the scaler is never
told that a step is over. Look at what 4 consists of.
"""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    parameters = list(parameters)
    scale = scaler.get_scale()
    (loss * scale).backward()
    for p in parameters:
        if p.grad is not None:
            p.grad /= scale
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    if torch.isfinite(norm):
        optimizer.step()
    return float(norm)
