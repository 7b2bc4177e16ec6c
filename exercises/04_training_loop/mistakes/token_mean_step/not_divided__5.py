"""The gradients were divided by the number of tokens counted so far, which is complete only at the last micro-batch.
The mean over the window needs the number of all its valid tokens; look at when you know it.
"""

import torch
from torch.nn import functional as F


def token_mean_step(model, micro_batches, optimizer, scaler, device_type, ignore_index=-100) -> float:
    total, count = 0.0, 0
    for x, y in micro_batches:
        count += int((y != ignore_index).sum())
        with torch.autocast(device_type, dtype=torch.float16):
            loss = F.cross_entropy(model(x).flatten(0, -2), y.flatten(), ignore_index=ignore_index, reduction="sum")
        scaler.scale(loss / max(count, 1)).backward()
        total += loss.item()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    return total / count
