"""."""


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    model.to(dtype)
    loss = loss_fn(model(x.to(dtype)).float(), y)
    loss.backward()
    model.float()
    return loss.detach()
