"""."""

import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    with torch.autocast(device_type, dtype=dtype):
        loss = loss_fn(model(x), y)
    torch.autograd.grad(loss, list(model.parameters()))
    return loss.detach()
