"""."""

import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    output = model(x)
    with torch.autocast(device_type, dtype=dtype):
        loss = loss_fn(output, y)
    loss.backward()
    return loss.detach()
