"""The model that is trained was changed: the average was written into it. Look at which of the two you write to."""

import torch


def ema_step(ema_model, model, decay, stepped):
    if not stepped:
        return
    with torch.no_grad():
        for average, weight in zip(ema_model.parameters(), model.parameters(), strict=True):
            weight.mul_(1 - decay).add_(average, alpha=decay)
        for mine, buffer in zip(ema_model.buffers(), model.buffers(), strict=True):
            mine.copy_(buffer)
