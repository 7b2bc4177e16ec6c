"""."""

import torch
from torch.nn import functional as F


def token_mean_step(model, micro_batches, optimizer, scaler, device_type, ignore_index=-100) -> float:
    count = sum(y.numel() for _, y in micro_batches)
    total = 0.0
    for x, y in micro_batches:
        with torch.autocast(device_type, dtype=torch.float16):
            each = F.cross_entropy(model(x).flatten(0, -2), y.flatten(), ignore_index=ignore_index, reduction="none")
        scaler.scale(each.sum() / count).backward()
        total += each.sum().item()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    return total / count
