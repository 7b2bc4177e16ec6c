"""The scheduler advanced although the scaler had skipped the step: the two scales that you compare are the same in
every step. Look at which call changes the scale, and on which side of it each of them is read.
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
            total += loss.item()
        if max_norm is not None:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        before = scaler.get_scale()
        scaler.step(optimizer)
        if scaler.get_scale() >= before:
            scheduler.step()
        scaler.update()
        optimizer.zero_grad()
        losses.append(total)
    return losses
