"""."""

import torch
from torch import nn


def train(model, batches, optimizer, scheduler, scaler, loss_fn, device_type, accumulate=1, max_norm=None):
    def step():
        scale = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        if scaler.get_scale() >= scale:
            scheduler.step()
        optimizer.zero_grad()

    losses, left, size = [], len(batches), 0
    for i, (x, y) in enumerate(batches):
        if i % accumulate == 0:
            size = min(accumulate, left)
            losses.append(0.0)
        left -= 1
        with torch.autocast(device_type, dtype=torch.float16):
            loss = loss_fn(model(x), y) / size
        scaler.scale(loss).backward()
        losses[-1] += loss.item()
        if (i + 1) % accumulate == 0:
            if max_norm is not None:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            step()
    if len(batches) % accumulate:
        step()
    return losses
