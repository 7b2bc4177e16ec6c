"""."""

import torch
from torch import nn


def train(model, batches, optimizer, scheduler, scaler, loss_fn, device_type, accumulate=1, max_norm=None):
    losses, pending = [], []
    for i, (x, y) in enumerate(batches):
        with torch.autocast(device_type, dtype=torch.float16):
            loss = loss_fn(model(x), y)
        scaler.scale(loss).backward()
        pending.append(loss.item())
        if (i + 1) % accumulate == 0 or i + 1 == len(batches):
            scaler.unscale_(optimizer)
            for p in model.parameters():
                p.grad /= accumulate
            if max_norm is not None:
                nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            scaler.step(optimizer)
            scale = scaler.get_scale()
            scaler.update()
            if scaler.get_scale() >= scale:
                scheduler.step()
            optimizer.zero_grad()
            losses.append(sum(pending) / accumulate)
            pending = []
    return losses
