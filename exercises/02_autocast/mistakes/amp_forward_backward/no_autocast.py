"""The model computed in FP32: no region was open in forward (1). Autocast is a context or a decorator that has to be
on while the model runs; making one and not entering it does nothing, and neither does one for another device.
"""


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    loss = loss_fn(model(x), y)
    loss.backward()
    return loss.detach()
