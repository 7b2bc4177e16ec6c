"""The means of the micro-batches were averaged, so that a token counts more the fewer others are valid beside it. All
valid tokens of the window are to count alike; look at how many tokens stand behind each of the means.
"""

import torch
from torch.nn import functional as F


def token_mean_step(model, micro_batches, optimizer, scaler, device_type, ignore_index=-100) -> float:
    total = 0.0
    for x, y in micro_batches:
        with torch.autocast(device_type, dtype=torch.float16):
            loss = F.cross_entropy(model(x).flatten(0, -2), y.flatten(), ignore_index=ignore_index)
            loss = loss / len(micro_batches)
        scaler.scale(loss).backward()
        total += loss.item()
    scaler.step(optimizer)
    scaler.update()
    return total
