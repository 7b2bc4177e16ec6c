"""The model computed with the weights that it had at first: one autocast region is open for the whole pass, and
autocast keeps its FP16 copies of the weights as long as that. Look at where your region begins and ends, and where the
weights change.
"""

import torch
from torch import nn


def train(model, batches, optimizer, scheduler, scaler, loss_fn, device_type, accumulate=1, max_norm=None):
    losses = []
    with torch.autocast(device_type, dtype=torch.float16):
        for start in range(0, len(batches), accumulate):
            window = batches[start : start + accumulate]
            total = 0.0
            for x, y in window:
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
            losses.append(total)
    return losses
