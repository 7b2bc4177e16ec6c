"""The losses came back as tensors, where Python numbers were asked for. A tensor stays on its device, and where its graph
still hangs on it, a list of them keeps what every forward pass has saved.
"""

import torch


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast(device_type, dtype=torch.bfloat16):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return losses
