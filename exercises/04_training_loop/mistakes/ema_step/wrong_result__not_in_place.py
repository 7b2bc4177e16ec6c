"""The average was computed, and ema_model knows nothing of it: its parameters are what they were. An assignment gives a
name to a new tensor and leaves the old one alone; look at what is changed in place."""

import torch


def ema_step(ema_model, model, decay, stepped):
    if not stepped:
        return
    with torch.no_grad():
        for average, weight in zip(ema_model.parameters(), model.parameters(), strict=True):
            average = decay * average + (1 - decay) * weight
        for mine, buffer in zip(ema_model.buffers(), model.buffers(), strict=True):
            mine.copy_(buffer)
