from torch import amp


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    with amp.autocast(device_type, dtype):
        output = model(x)
    loss = loss_fn(output.float(), y)
    loss.backward()
    return loss.data
