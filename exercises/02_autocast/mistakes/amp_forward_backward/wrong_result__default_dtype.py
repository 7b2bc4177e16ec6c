"""The region does not have the dtype that was asked for. Autocast has a default for each device, FP16 on CUDA and
BF16 on the CPU, and takes it where nothing else is said; you were given a dtype.
"""

import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    with torch.autocast(device_type):
        loss = loss_fn(model(x), y)
    loss.backward()
    return loss.detach()
