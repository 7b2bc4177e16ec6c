"""A micro-batch without a valid token made the loss nan: the mean over no tokens is 0 / 0, and nan times a weight of 0
is still nan. Ask what a sum over no tokens is.
"""

import torch
from torch.nn import functional as F


def token_mean_step(model, micro_batches, optimizer, scaler, device_type, ignore_index=-100) -> float:
    valid = [int((y != ignore_index).sum()) for _, y in micro_batches]
    total = 0.0
    for (x, y), count in zip(micro_batches, valid, strict=True):
        with torch.autocast(device_type, dtype=torch.float16):
            loss = F.cross_entropy(model(x).flatten(0, -2), y.flatten(), ignore_index=ignore_index)
        loss = loss * count / sum(valid)
        scaler.scale(loss).backward()
        total += loss.item()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    return total
