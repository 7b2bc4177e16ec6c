"""The float buffers were averaged like weights. They are statistics of what the model saw last and are to be copied;
look at what your loop takes for a parameter.
"""

import torch


def ema_step(ema_model, model, decay, stepped):
    if not stepped:
        return
    with torch.no_grad():
        for average, weight in zip(ema_model.parameters(), model.parameters(), strict=True):
            average.mul_(decay).add_(weight, alpha=1 - decay)
        for mine, buffer in zip(ema_model.buffers(), model.buffers(), strict=True):
            if buffer.is_floating_point():
                mine.mul_(decay).add_(buffer, alpha=1 - decay)
            else:
                mine.copy_(buffer)
