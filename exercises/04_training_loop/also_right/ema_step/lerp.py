"""A decorator and lerp."""

import torch


@torch.no_grad()
def ema_step(ema_model, model, decay, stepped) -> None:
    if stepped:
        for average, weight in zip(ema_model.parameters(), model.parameters(), strict=True):
            average.lerp_(weight, 1 - decay)
        for mine, buffer in zip(ema_model.buffers(), model.buffers(), strict=True):
            mine.data = buffer.clone()
