"""The gradients are clipped before the step, which nobody asked for: large steps become smaller than they should
be."""

import torch


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast(device_type, dtype=torch.bfloat16):
            loss = loss_fn(model(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses
