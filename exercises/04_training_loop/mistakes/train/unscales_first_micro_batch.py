"""The gradient was unscaled after the first micro-batch, and the others were added to it `scale` times too large. 3
divides what is in .grad at that moment, once; look at when the gradient of the window is complete.
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
                loss = loss_fn(model(x), y) / len(window)
            scaler.scale(loss).backward()
            if i == 0:
                scaler.unscale_(optimizer)
            total += loss.item()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        scaler.step(optimizer)
        scale = scaler.get_scale()
        scaler.update()
        if scaler.get_scale() >= scale:
            scheduler.step()
        optimizer.zero_grad()
        losses.append(total)
    return losses
