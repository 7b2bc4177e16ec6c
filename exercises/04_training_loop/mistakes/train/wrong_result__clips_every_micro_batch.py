"""The gradient was clipped after every micro-batch, so what was cut off depends on how far the window had come.
max_norm is a length of the gradient of the whole window; look at how often you clip.
"""

import torch
from torch import nn


def train(model, batches, optimizer, scheduler, scaler, loss_fn, device_type, accumulate=1, max_norm=None):
    losses = []
    for start in range(0, len(batches), accumulate):
        window = batches[start : start + accumulate]
        total = 0.0
        for x, y in window:
            with torch.autocast(device_type, dtype=torch.float16):
                loss = loss_fn(model(x), y) / len(window)
            scaler.scale(loss).backward()
            if max_norm is not None:
                nn.utils.clip_grad_norm_(model.parameters(), max_norm * scaler.get_scale())
            total += loss.item()
        scaler.step(optimizer)
        scale = scaler.get_scale()
        scaler.update()
        if scaler.get_scale() >= scale:
            scheduler.step()
        optimizer.zero_grad()
        losses.append(total)
    return losses
