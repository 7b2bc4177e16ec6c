"""The parameters themselves were converted, so that there is no FP32 weight left for the optimizer to step. Under
autocast the weights stay FP32 and each operation gets a cast copy; nothing is to be converted by hand.
"""


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    model.to(dtype)
    loss = loss_fn(model(x.to(dtype)), y)
    loss.backward()
    return loss.detach()
