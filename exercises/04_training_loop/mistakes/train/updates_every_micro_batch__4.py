"""The scaler was updated after every micro-batch, although nothing had been stepped or unscaled yet. `update` ends a
step (4), and the micro-batches of a window share one; look at what stands inside the inner loop.
"""

import torch
from torch import nn


def train(model, batches, optimizer, scheduler, scaler, loss_fn, device_type, accumulate=1, max_norm=None):
    losses, pending = [], []
    for i, (x, y) in enumerate(batches):
        with torch.autocast(device_type, dtype=torch.float16):
            loss = loss_fn(model(x), y)
        pending.append(loss.item())
        scaler.scale(loss / accumulate).backward()
        scale = scaler.get_scale()
        if (i + 1) % accumulate == 0 or i + 1 == len(batches):
            if max_norm is not None:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            scaler.step(optimizer)
        scaler.update()
        if (i + 1) % accumulate == 0 or i + 1 == len(batches):
            if scaler.get_scale() >= scale:
                scheduler.step()
            optimizer.zero_grad()
            losses.append(sum(pending) / len(pending))
            pending = []
    return losses
