"""The loss that you return is right, and the gradient is that of the sum of the micro-batches' means: the step grows
with their number. Look at the tensor that went through `backward`, and at what several calls of it do to .grad.
"""

import torch
from torch.nn import functional as F


def token_mean_step(model, micro_batches, optimizer, scaler, device_type, ignore_index=-100) -> float:
    total, count = 0.0, 0
    for x, y in micro_batches:
        with torch.autocast(device_type, dtype=torch.float16):
            loss = F.cross_entropy(model(x).flatten(0, -2), y.flatten(), ignore_index=ignore_index)
        scaler.scale(loss).backward()
        valid = int((y != ignore_index).sum())
        total += loss.item() * valid if valid else 0.0
        count += valid
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    return total / count
