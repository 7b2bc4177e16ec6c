"""The parameters are what they were. You do step, and before that you empty the gradients which backward has just filled: the
step finds nothing to take. Gradients are to be there from backward (2) until the step (4).
"""

import torch


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    losses = []
    for x, y in batches:
        with torch.autocast(device_type, dtype=torch.bfloat16):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
        losses.append(loss.item())
    return losses
