"""One region and one backward for the whole window, as if it were one big batch."""

import torch
from torch.nn import functional as F


def token_mean_step(model, micro_batches, optimizer, scaler, device_type, ignore_index=-100) -> float:
    with torch.autocast(device_type, dtype=torch.float16):
        logits = torch.cat([model(x).flatten(0, -2) for x, _ in micro_batches])
        targets = torch.cat([y.flatten() for _, y in micro_batches])
        loss = F.cross_entropy(logits, targets, ignore_index=ignore_index)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    return loss.item()
