"""A GradScaler scales the loss. BF16 has FP32's exponents, so that its gradients do not underflow where FP16's do,
and there is nothing to scale: the numbers are the same, and you wait for a scale that does nothing. Leave it out.
"""

import torch


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    scaler = torch.amp.GradScaler(device_type)
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast(device_type, dtype=torch.bfloat16):
            loss = loss_fn(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses
