"""It is right where the ignored class is cross_entropy's own default and wrong elsewhere: the loss was not told which
target to ignore, so it learns to predict the padding, or refuses it as no class at all. Look at what you pass on.
"""

import torch
from torch.nn import functional as F


def token_mean_step(model, micro_batches, optimizer, scaler, device_type, ignore_index=-100) -> float:
    count = sum(int((y != ignore_index).sum()) for _, y in micro_batches)
    total = 0.0
    for x, y in micro_batches:
        with torch.autocast(device_type, dtype=torch.float16):
            loss = F.cross_entropy(model(x).flatten(0, -2), y.flatten(), reduction="sum") / count
        scaler.scale(loss).backward()
        total += loss.item()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    return total
