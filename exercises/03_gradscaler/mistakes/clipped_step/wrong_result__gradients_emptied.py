"""The scaler was asked to step when no gradient was left, so the optimizer changed nothing. Look at when your gradients
are emptied, and who still needs them then."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    optimizer.zero_grad()
    scaler.step(optimizer)
    scaler.update()
    return float(norm)
