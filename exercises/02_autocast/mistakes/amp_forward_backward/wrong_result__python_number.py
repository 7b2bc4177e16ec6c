"""A Python number came back where a tensor was asked for: reading it waits for the GPU at every step. Return the
tensor, cut off from its graph, and let the caller decide when to read it.
"""

import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    with torch.autocast(device_type, dtype=dtype):
        loss = loss_fn(model(x), y)
    loss.backward()
    return loss.item()
