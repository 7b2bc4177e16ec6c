"""."""

import torch
from torch import nn


def train(model, batches, optimizer, scheduler, scaler, loss_fn, device_type, accumulate=1, max_norm=None):
    losses, pending = [], []
    for i, (x, y) in enumerate(batches):
        with torch.autocast(device_type, dtype=torch.float16):
            loss = loss_fn(model(x), y)
        first = i - i % accumulate
        scaler.scale(loss / min(accumulate, len(batches) - first)).backward()
        pending.append(loss.item())
        if max_norm is not None and i == first:
            scaler.unscale_(optimizer)
        if (i + 1) % accumulate == 0 or i + 1 == len(batches):
            if max_norm is not None:
                nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            scaler.step(optimizer)
            scale = scaler.get_scale()
            scaler.update()
            if scaler.get_scale() >= scale:
                scheduler.step()
            optimizer.zero_grad()
            losses.append(sum(pending) / len(pending))
            pending = []
    return losses
