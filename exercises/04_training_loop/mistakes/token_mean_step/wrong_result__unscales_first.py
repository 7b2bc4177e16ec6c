"""The gradient was unscaled when only a part of it was there, and the rest was added to it `scale` times too large. 3
divides what is in .grad at that moment, once; look at when the gradient is complete."""

import torch
from torch.nn import functional as F


def token_mean_step(model, micro_batches, optimizer, scaler, device_type, ignore_index=-100) -> float:
    count = sum(int((y != ignore_index).sum()) for _, y in micro_batches)
    total = 0.0
    for number, (x, y) in enumerate(micro_batches):
        with torch.autocast(device_type, dtype=torch.float16):
            loss = F.cross_entropy(model(x).flatten(0, -2), y.flatten(), ignore_index=ignore_index, reduction="sum")
        scaler.scale(loss / count).backward()
        if number == 0:
            scaler.unscale_(optimizer)
        total += loss.item()
    scaler.step(optimizer)
    scaler.update()
    return total / count
