"""The scaler was updated before its step, which made it forget that the gradients had been unscaled, so that step
divided them once more. An update ends a round; look at the order of the two calls in 4."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    scaler.update()
    scaler.step(optimizer)
    return float(norm)
