"""."""

import torch


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast(device_type, dtype=torch.bfloat16):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
