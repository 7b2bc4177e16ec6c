"""."""

import torch
from torch.amp import GradScaler, autocast

scaler = GradScaler("cpu", init_scale=1024.0)


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with autocast(device_type, dtype=torch.bfloat16):
            loss = loss_fn(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses
