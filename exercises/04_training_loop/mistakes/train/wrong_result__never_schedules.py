"""The scheduler never advanced, or not when a step landed, so that all steps were made with the same learning rate. Look
at where it is called, and in which case."""

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
        scaler.update()
        optimizer.zero_grad()
        losses.append(total)
    return losses
