"""Autocast is not for the caller what it was before the call: a global switch was thrown, or a region entered and
never left. Everything that runs afterwards in that process is cast in another way; use a form that ends by itself,
also after an error."""

import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    torch.set_autocast_enabled(device_type, True)
    torch.set_autocast_dtype(device_type, dtype)
    loss = loss_fn(model(x), y)
    loss.backward()
    return loss.detach()
