"""The caller's own region is closed after the call. You switched autocast off at the end instead of putting it back
to what it was; a region that you open with a context does that by itself.
"""

import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    torch.set_autocast_enabled(device_type, True)
    torch.set_autocast_dtype(device_type, dtype)
    loss = loss_fn(model(x), y)
    torch.set_autocast_enabled(device_type, False)
    torch.clear_autocast_cache()
    loss.backward()
    return loss.detach()
