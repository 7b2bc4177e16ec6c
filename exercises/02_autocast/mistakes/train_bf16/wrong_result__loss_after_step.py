"""The losses that you return are those after the step, of weights that have just been fitted to the same batch. A
training loss is the one that the step went down on; you have it already."""

import torch


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast(device_type, dtype=torch.bfloat16):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        with torch.no_grad(), torch.autocast(device_type, dtype=torch.bfloat16):
            losses.append(loss_fn(model(x), y).item())
    return losses
