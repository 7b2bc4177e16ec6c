"""Adds up gradients of sums and divides them by the number of valid tokens when all are known."""

import torch
from torch.nn import functional as F


def token_mean_step(model, micro_batches, optimizer, scaler, device_type, ignore_index=-100) -> float:
    total, valid = 0.0, 0
    optimizer.zero_grad()
    for x, y in micro_batches:
        with torch.autocast(device_type, torch.float16):
            logits = model(x).float()
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), y.view(-1), ignore_index=ignore_index, reduction="sum")
        scaler.scale(loss).backward()
        total += loss.item()
        valid += (y != ignore_index).sum().item()
    scaler.unscale_(optimizer)
    for p in model.parameters():
        p.grad.div_(valid)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    return total / valid
