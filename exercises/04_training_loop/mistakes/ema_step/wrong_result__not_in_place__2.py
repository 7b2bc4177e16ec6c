"""The ema_model that was given to you is what it was: the average went into something else, a copy or a new tensor under
an old name. Look at what your code changes in place."""

import copy

import torch


def ema_step(ema_model, model, decay, stepped):
    if not stepped:
        return
    ema_model = copy.deepcopy(ema_model)
    with torch.no_grad():
        for average, weight in zip(ema_model.parameters(), model.parameters(), strict=True):
            average.mul_(decay).add_(weight, alpha=1 - decay)
        for mine, buffer in zip(ema_model.buffers(), model.buffers(), strict=True):
            mine.copy_(buffer)
