import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    with torch.autocast(device_type, dtype=dtype, cache_enabled=False):
        loss = loss_fn(model(x), y)
    loss.backward()
    return torch.tensor(loss.item())
