"""A micro-batch counts with you by its number of samples. The loss of a window is the mean of its micro-batches' losses,
in which all of them count alike; look at what each is multiplied or divided by."""

import torch
from torch import nn


def train(model, batches, optimizer, scheduler, scaler, loss_fn, device_type, accumulate=1, max_norm=None):
    losses = []
    for start in range(0, len(batches), accumulate):
        window = batches[start : start + accumulate]
        total, samples = 0.0, sum(len(x) for x, _ in window)
        for x, y in window:
            with torch.autocast(device_type, dtype=torch.float16):
                loss = loss_fn(model(x), y) * len(x) / samples
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
