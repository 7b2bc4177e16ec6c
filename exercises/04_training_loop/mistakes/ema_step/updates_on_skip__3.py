"""The average moved when the optimizer had not stepped, and stood still when it had. Read the condition aloud."""

import torch


def ema_step(ema_model, model, decay, stepped):
    if stepped:
        return
    with torch.no_grad():
        for average, weight in zip(ema_model.parameters(), model.parameters(), strict=True):
            average.mul_(decay).add_(weight, alpha=1 - decay)
        for mine, buffer in zip(ema_model.buffers(), model.buffers(), strict=True):
            mine.copy_(buffer)
