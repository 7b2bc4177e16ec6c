"""."""

import torch
from torch.nn import functional as F


def token_mean_step(model, micro_batches, optimizer, scaler, device_type, ignore_index=-100) -> float:
    micro_batches = [(x, y) for x, y in micro_batches if (y != ignore_index).any()]
    total = 0.0
    for x, y in micro_batches:
        with torch.autocast(device_type, dtype=torch.float16):
            loss = F.cross_entropy(model(x).flatten(0, -2), y.flatten(), ignore_index=ignore_index)
        scaler.scale(loss / len(micro_batches)).backward()
        total += loss.item() / len(micro_batches)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    return total
