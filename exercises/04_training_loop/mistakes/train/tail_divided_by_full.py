"""The last window was divided by `accumulate` although it has fewer micro-batches, so its step is too short. Its loss
is the mean over those that are there; look at the number that you divide by when the list comes to its end.
"""

import torch
from torch import nn


def train(model, batches, optimizer, scheduler, scaler, loss_fn, device_type, accumulate=1, max_norm=None):
    losses = []
    for start in range(0, len(batches), accumulate):
        total = 0.0
        for x, y in batches[start : start + accumulate]:
            with torch.autocast(device_type, dtype=torch.float16):
                loss = loss_fn(model(x), y) / accumulate
            scaler.scale(loss).backward()
            total += loss.item()
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
    return losses
