"""."""

import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    before = torch.is_autocast_enabled(device_type)
    torch.set_autocast_enabled(device_type, True)
    torch.set_autocast_dtype(device_type, dtype)
    loss = loss_fn(model(x), y)
    torch.set_autocast_enabled(device_type, before)
    torch.clear_autocast_cache()
    loss.backward()
    return loss.detach()
