"""The average moved although the optimizer had not stepped, so it counts some weights twice. A skipped step is none for
the average either; look at what `stepped` decides in your code.
"""

import torch


def ema_step(ema_model, model, decay, stepped):
    with torch.no_grad():
        for average, weight in zip(ema_model.parameters(), model.parameters(), strict=True):
            average.mul_(decay).add_(weight, alpha=1 - decay)
        for mine, buffer in zip(ema_model.buffers(), model.buffers(), strict=True):
            mine.copy_(buffer)
