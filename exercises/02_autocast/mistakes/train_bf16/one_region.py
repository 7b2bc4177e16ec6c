"""One region around the whole loop: autocast keeps the BF16 copy of each weight until that region ends, so that every
forward pass after the first uses the weights from before the first step. Where does the region have to end?
"""

import torch


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    losses = []
    with torch.autocast(device_type, dtype=torch.bfloat16):
        for x, y in batches:
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses
