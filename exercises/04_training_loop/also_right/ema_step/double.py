"""In FP64, rounded once."""

import torch


@torch.no_grad()
def ema_step(ema_model, model, decay, stepped) -> None:
    if not stepped:
        return
    for average, weight in zip(ema_model.parameters(), model.parameters(), strict=True):
        average.copy_(average.double() * decay + weight.double() * (1 - decay))
    for mine, buffer in zip(ema_model.buffers(), model.buffers(), strict=True):
        mine.copy_(buffer)
