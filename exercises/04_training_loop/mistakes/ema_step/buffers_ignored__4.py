"""."""

import torch


def ema_step(ema_model, model, decay, stepped):
    if not stepped:
        return
    with torch.no_grad():
        for average, weight in zip(ema_model.parameters(), model.parameters(), strict=True):
            average.mul_(decay).add_(weight, alpha=1 - decay)
        buffers = dict(ema_model.named_buffers())
        for name, buffer in model.named_buffers():
            buffers[name] = buffer.clone()
