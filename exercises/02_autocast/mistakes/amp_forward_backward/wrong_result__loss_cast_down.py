"""The loss is computed in FP32, as it should be, and is rounded to the dtype of the region before you return it. What was asked
for is the loss, cut off from its graph; nothing about its dtype has to change for that.
"""

import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    with torch.autocast(device_type, dtype=dtype):
        loss = loss_fn(model(x), y)
    loss.backward()
    return loss.detach().to(dtype)
