"""."""

import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    torch.set_autocast_cache_enabled(False)
    with torch.autocast(device_type, dtype=dtype):
        loss = loss_fn(model(x), y)
    loss.backward()
    return loss.detach()
