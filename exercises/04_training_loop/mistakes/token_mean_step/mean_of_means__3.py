"""The loss that you return is right, the gradient is not: it is that of the mean of the micro-batches' means, in which
a token counts more the fewer others are valid beside it. Look at the tensor that went through `backward`.
"""

import torch
from torch.nn import functional as F


def token_mean_step(model, micro_batches, optimizer, scaler, device_type, ignore_index=-100) -> float:
    total, count = 0.0, 0
    for x, y in micro_batches:
        valid = int((y != ignore_index).sum())
        with torch.autocast(device_type, dtype=torch.float16):
            loss = F.cross_entropy(model(x).flatten(0, -2), y.flatten(), ignore_index=ignore_index, reduction="sum")
        scaler.scale(loss / max(valid, 1) / len(micro_batches)).backward()
        total, count = total + loss.item(), count + valid
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    return total / count
