"""The means of the micro-batches were added up and divided by nothing, so the step grows with their number. A mean over
all valid tokens is asked for; look at what several calls of `backward` do to .grad.
"""

import torch
from torch.nn import functional as F


def token_mean_step(model, micro_batches, optimizer, scaler, device_type, ignore_index=-100) -> float:
    losses = []
    for x, y in micro_batches:
        valid = (y != ignore_index).sum().clamp(min=1)
        with torch.autocast(device_type, dtype=torch.float16):
            loss = F.cross_entropy(model(x).flatten(0, -2), y.flatten(), ignore_index=ignore_index, reduction="sum")
        loss = loss / valid
        scaler.scale(loss).backward()
        losses.append(loss.item())
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    return sum(losses) / len(losses)
