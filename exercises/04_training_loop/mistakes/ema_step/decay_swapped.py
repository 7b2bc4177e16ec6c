"""The average follows the model far too closely: the two factors stand at each other's place. Put decay 0.999 in, and
ask how much of the old average should be left.
"""

import torch


def ema_step(ema_model, model, decay, stepped):
    if not stepped:
        return
    with torch.no_grad():
        for average, weight in zip(ema_model.parameters(), model.parameters(), strict=True):
            average.mul_(1 - decay).add_(weight, alpha=decay)
        for mine, buffer in zip(ema_model.buffers(), model.buffers(), strict=True):
            mine.copy_(buffer)
