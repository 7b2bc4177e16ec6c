"""."""

import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    with torch.autocast(device_type, dtype=dtype):
        loss = loss_fn(model(x), y)
    loss.backward()
    model.zero_grad()
    return loss.detach()
