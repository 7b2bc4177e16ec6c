"""."""

import torch


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    losses = []
    with torch.autocast(device_type, dtype=torch.bfloat16):
        for x, y in batches:
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            with torch.autocast(device_type, enabled=False):
                loss.backward()
                optimizer.step()
            losses.append(loss.item())
    return losses
