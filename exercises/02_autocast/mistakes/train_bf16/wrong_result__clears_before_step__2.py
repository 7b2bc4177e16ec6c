"""."""

import torch


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    losses = []
    for x, y in batches:
        with torch.autocast(device_type, dtype=torch.bfloat16):
            loss = loss_fn(model(x), y)
        loss.backward()
        model.zero_grad(set_to_none=False)
        optimizer.step()
        losses.append(loss.item())
    return losses
