"""No gradient is left at the parameters: backward (2) was not called, there was no graph for it to go back through,
or the gradients were emptied again. The loss alone moves nothing."""

import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    with torch.autocast(device_type, dtype=dtype):
        loss = loss_fn(model(x), y)
    return loss.detach()
