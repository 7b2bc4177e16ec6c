"""Each micro-batch became an optimizer step of its own, so the later ones were computed with weights that the earlier
ones had moved. 4 belongs to the window; look at what stands inside the loop.
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
        scaler.scale(loss).backward()
        total += loss.item()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    return total
