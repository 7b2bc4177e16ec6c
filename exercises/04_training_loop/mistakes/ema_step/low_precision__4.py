"""The average is kept in half precision, where a small step is rounded away: with a decay close to 1 it hardly moves or
does not move at all. Print the dtype of ema_model's parameters after your call.
"""

import torch


def ema_step(ema_model, model, decay, stepped):
    if not stepped:
        return
    ema_model.half()
    with torch.no_grad():
        for average, weight in zip(ema_model.parameters(), model.parameters(), strict=True):
            average.mul_(decay).add_(weight, alpha=1 - decay)
        for mine, buffer in zip(ema_model.buffers(), model.buffers(), strict=True):
            mine.copy_(buffer)
