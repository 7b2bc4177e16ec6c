"""The loss went backward without the scale (2), and the scaler's step divided by it: the update is `scale` times too
small. Look at which tensor `backward` is called on.
"""

import torch
from torch.nn import functional as F


def token_mean_step(model, micro_batches, optimizer, scaler, device_type, ignore_index=-100) -> float:
    valid = sum(int((y != ignore_index).sum()) for _, y in micro_batches)
    total = 0.0
    for x, y in micro_batches:
        with torch.autocast(device_type, dtype=torch.float16):
            logits = model(x)
            loss = (
                F.cross_entropy(logits.flatten(0, -2), y.flatten(), ignore_index=ignore_index, reduction="sum") / valid
            )
        scaler.scale(loss)
        loss.backward()
        total += loss.item()
    scaler.step(optimizer)
    scaler.update()
    return total
