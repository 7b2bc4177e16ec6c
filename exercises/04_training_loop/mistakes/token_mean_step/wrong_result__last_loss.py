"""The step is right; the loss that you return is the last micro-batch's share of it. The mean over the valid tokens of
all micro-batches is asked for; look at what is kept of the others.
"""

import torch
from torch.nn import functional as F


def token_mean_step(model, micro_batches, optimizer, scaler, device_type, ignore_index=-100) -> float:
    valid = sum(int((y != ignore_index).sum()) for _, y in micro_batches)
    for x, y in micro_batches:
        with torch.autocast(device_type, dtype=torch.float16):
            logits = model(x)
            loss = (
                F.cross_entropy(logits.flatten(0, -2), y.flatten(), ignore_index=ignore_index, reduction="sum") / valid
            )
        scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return loss.item()
