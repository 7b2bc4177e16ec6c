"""The loss of each micro-batch was divided by its place in the window, so the first one counts most and the last one
least. In a mean all count alike; look at the number that you divide by, and whether it is the same for all of them.
"""

import torch
from torch import nn


def train(model, batches, optimizer, scheduler, scaler, loss_fn, device_type, accumulate=1, max_norm=None):
    losses = []
    for start in range(0, len(batches), accumulate):
        window = batches[start : start + accumulate]
        total = 0.0
        for i, (x, y) in enumerate(window):
            with torch.autocast(device_type, dtype=torch.float16):
                loss = loss_fn(model(x), y)
            scaler.scale(loss / (i + 1)).backward()
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
        losses.append(total / len(window))
    return losses
