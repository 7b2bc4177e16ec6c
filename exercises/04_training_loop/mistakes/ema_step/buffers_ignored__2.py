"""Only the integer buffers were copied, and the running statistics are those that ema_model was made with. Look at
which buffers your condition lets through.
"""

import torch


def ema_step(ema_model, model, decay, stepped):
    if not stepped:
        return
    with torch.no_grad():
        for average, weight in zip(ema_model.parameters(), model.parameters(), strict=True):
            average.mul_(decay).add_(weight, alpha=1 - decay)
        for mine, buffer in zip(ema_model.buffers(), model.buffers(), strict=True):
            if not buffer.is_floating_point():
                mine.copy_(buffer)
