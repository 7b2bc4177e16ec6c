"""You leave the dtype to autocast's default. That is BF16 on the CPU and FP16 on CUDA, so that the same line trains
in a precision that needs a scaler as soon as there is a GPU. Say what you mean.
"""

import torch


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast(device_type):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
