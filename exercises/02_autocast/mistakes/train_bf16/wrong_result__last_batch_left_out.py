"""The last batch is left out. One pass is a pass over all batches, with a loss for each of them."""

import torch


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    losses = []
    for x, y in batches[:-1]:
        optimizer.zero_grad()
        with torch.autocast(device_type, dtype=torch.bfloat16):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
