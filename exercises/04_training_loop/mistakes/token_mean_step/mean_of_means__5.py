"""The gradient is right; the loss that you return is the mean of the micro-batches' means, in which a token counts more
the fewer others are valid beside it. Return the number whose gradient you take.
"""

import torch
from torch.nn import functional as F


def token_mean_step(model, micro_batches, optimizer, scaler, device_type, ignore_index=-100) -> float:
    count = sum(int((y != ignore_index).sum()) for _, y in micro_batches)
    means = []
    for x, y in micro_batches:
        valid = int((y != ignore_index).sum())
        with torch.autocast(device_type, dtype=torch.float16):
            total = F.cross_entropy(model(x).flatten(0, -2), y.flatten(), ignore_index=ignore_index, reduction="sum")
        scaler.scale(total / count).backward()
        means.append(total.item() / max(valid, 1))
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    return sum(means) / len(means)
