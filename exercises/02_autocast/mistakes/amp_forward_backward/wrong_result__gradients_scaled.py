"""The gradients are those of a loss that was multiplied, and nobody divides them again. There is no scaler in this
exercise: backward goes through the loss itself."""

import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    scaler = torch.amp.GradScaler(device_type)
    with torch.autocast(device_type, dtype=dtype):
        loss = loss_fn(model(x), y)
    scaler.scale(loss).backward()
    return loss.detach()
