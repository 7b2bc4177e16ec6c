"""Without a step the average was set to the model's weights. A skipped step changes nothing in ema_model; look at what
your code does when `stepped` is false.
"""

import torch


@torch.no_grad()
def ema_step(ema_model, model, decay, stepped):
    decay = decay if stepped else 0.0
    for average, weight in zip(ema_model.parameters(), model.parameters(), strict=True):
        average.lerp_(weight, 1 - decay)
    for mine, buffer in zip(ema_model.buffers(), model.buffers(), strict=True):
        mine.copy_(buffer)
