"""Everything is right but what you return: the loss still hangs on its graph. A caller that keeps it, in a list or a
running sum, keeps alive whatever autograd knows about it; return the number without its history.
"""

import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    with torch.autocast(device_type, dtype=dtype):
        loss = loss_fn(model(x), y)
    loss.backward()
    return loss
