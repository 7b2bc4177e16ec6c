"""."""

import torch


def ema_step(ema_model, model, decay, stepped):
    if not stepped:
        return
    with torch.no_grad():
        for average, weight in zip(ema_model.parameters(), model.parameters(), strict=True):
            average.mul_(decay).add_(weight.bfloat16(), alpha=1 - decay)
        for mine, buffer in zip(ema_model.buffers(), model.buffers(), strict=True):
            mine.copy_(buffer)
