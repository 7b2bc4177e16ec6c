"""Gradients of earlier steps, or of an earlier run, are still there when backward (2) adds the new ones, and each
step goes along the sum. Look for the line that empties them, and at what comes first: it, or the first backward.
"""

import torch


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    losses = []
    for x, y in batches:
        with torch.autocast(device_type, dtype=torch.bfloat16):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
