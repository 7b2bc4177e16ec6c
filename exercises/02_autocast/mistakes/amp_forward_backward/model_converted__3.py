"""."""


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    model.half()
    loss = loss_fn(model(x.half()), y)
    loss.backward()
    return loss.detach().float()
