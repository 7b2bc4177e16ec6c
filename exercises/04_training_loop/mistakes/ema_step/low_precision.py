"""The average went through half precision, where a small step is rounded away: with a decay close to 1 it hardly moves
or does not move at all. Look at the dtype of everything that stands between the old average and the new one.
"""

import torch


def ema_step(ema_model, model, decay, stepped):
    if not stepped:
        return
    with torch.no_grad():
        for average, weight in zip(ema_model.parameters(), model.parameters(), strict=True):
            average.copy_((average.half() * decay).add_(weight.half(), alpha=1 - decay))
        for mine, buffer in zip(ema_model.buffers(), model.buffers(), strict=True):
            mine.copy_(buffer)
