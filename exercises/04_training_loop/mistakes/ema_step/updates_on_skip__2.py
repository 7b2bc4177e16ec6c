"""The buffers were copied although the optimizer had not stepped. A skipped step changes nothing in ema_model; look at
which of your lines depend on `stepped`.
"""

import torch


def ema_step(ema_model, model, decay, stepped):
    with torch.no_grad():
        for average, weight in zip(ema_model.parameters(), model.parameters(), strict=True):
            if stepped:
                average.mul_(decay).add_(weight, alpha=1 - decay)
        for mine, buffer in zip(ema_model.buffers(), model.buffers(), strict=True):
            mine.copy_(buffer)
