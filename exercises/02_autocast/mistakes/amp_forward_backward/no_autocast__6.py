"""."""

import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    loss = loss_fn(model(x), y)
    with torch.autocast(device_type, dtype=dtype):
        loss.backward()
    return loss.detach()
