"""The loss was cut from its graph before backward (2), which then has nothing to go back through. Detach what you
return, not what you differentiate.
"""

import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    with torch.autocast(device_type, dtype=dtype):
        loss = loss_fn(model(x), y).detach()
    loss.backward()
    return loss
