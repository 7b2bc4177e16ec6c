"""."""

import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    with torch.autocast(device_type, dtype=dtype):
        output = model(x)
    loss = loss_fn(output, y).float()
    loss.backward()
    return loss.detach()
