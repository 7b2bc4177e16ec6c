"""The forward pass ran in FP32: the model is called outside of an autocast region. Look at 1, and at what `device_type`
is given to you for.
"""

import torch
from torch.nn import functional as F


def token_mean_step(model, micro_batches, optimizer, scaler, device_type, ignore_index=-100) -> float:
    valid = sum(int((y != ignore_index).sum()) for _, y in micro_batches)
    total = 0.0
    for x, y in micro_batches:
        logits = model(x)
        with torch.autocast(device_type, dtype=torch.float16):
            loss = (
                F.cross_entropy(logits.flatten(0, -2), y.flatten(), ignore_index=ignore_index, reduction="sum") / valid
            )
        scaler.scale(loss).backward()
        total += loss.item()
    scaler.step(optimizer)
    scaler.update()
    return total
