"""."""

import torch
from torch.nn import functional as F


def token_mean_step(model, micro_batches, optimizer, scaler, device_type, ignore_index=-100) -> float:
    losses = []
    for x, y in micro_batches:
        with torch.autocast(device_type, dtype=torch.float16):
            total = F.cross_entropy(model(x).flatten(0, -2), y.flatten(), ignore_index=ignore_index, reduction="sum")
        loss = total / (y != ignore_index).sum().clamp(min=1)
        scaler.scale(loss / len(micro_batches)).backward()
        losses.append(loss.item())
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    return sum(losses) / len(losses)
