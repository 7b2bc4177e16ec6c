"""The loss that you return of a skipped window is not the one that was computed. It has its loss all the same; look at
what becomes of it there."""

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
        losses.append(total if scaler.get_scale() >= scale else float("nan"))
    return losses
