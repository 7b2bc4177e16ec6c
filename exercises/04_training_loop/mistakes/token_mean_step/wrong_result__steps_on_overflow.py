"""The optimizer stepped with gradients that had overflowed. Whether a step is made is the scaler's decision (4); look at
who makes it in your code."""

import torch
from torch.nn import functional as F


def token_mean_step(model, micro_batches, optimizer, scaler, device_type, ignore_index=-100) -> float:
    count = sum(int((y != ignore_index).sum()) for _, y in micro_batches)
    total = 0.0
    for x, y in micro_batches:
        with torch.autocast(device_type, dtype=torch.float16):
            loss = F.cross_entropy(model(x).flatten(0, -2), y.flatten(), ignore_index=ignore_index, reduction="sum")
        scaler.scale(loss / count).backward()
        total += loss.item()
    scaler.unscale_(optimizer)
    optimizer.step()
    scaler.update()
    return total / count
