"""The optimizer that you were given has not stepped: gradients are there, and what it would make of them never
reaches the parameters. Look for the line that updates them, and at whose it is."""

import torch


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast(device_type, dtype=torch.bfloat16):
            loss = loss_fn(model(x), y)
        loss.backward()
        losses.append(loss.item())
    return losses
