"""The last window was divided by the number of micro-batches that were left at each of them, which is not its length.
Its loss is the mean over those that are there; look at the number that you divide by when the list comes to its end.
"""

import torch
from torch import nn


def train(model, batches, optimizer, scheduler, scaler, loss_fn, device_type, accumulate=1, max_norm=None):
    losses, total = [], 0.0
    for i, (x, y) in enumerate(batches):
        size = min(accumulate, len(batches) - i) if len(batches) - i < accumulate - i % accumulate else accumulate
        with torch.autocast(device_type, dtype=torch.float16):
            loss = loss_fn(model(x), y) / size
        scaler.scale(loss).backward()
        total += loss.item()
        if (i + 1) % accumulate == 0 or i + 1 == len(batches):
            if max_norm is not None:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            scaler.step(optimizer)
            scale = scaler.get_scale()
            scaler.update()
            if scaler.get_scale() >= scale:
                scheduler.step()
            optimizer.zero_grad()
            losses.append(total)
            total = 0.0
    return losses
