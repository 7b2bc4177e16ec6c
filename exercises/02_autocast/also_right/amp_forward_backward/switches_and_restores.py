import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    was, which = torch.is_autocast_enabled(device_type), torch.get_autocast_dtype(device_type)
    torch.clear_autocast_cache()
    try:
        torch.set_autocast_enabled(device_type, True)
        torch.set_autocast_dtype(device_type, dtype)
        loss = loss_fn(model(x), y)
    finally:
        torch.set_autocast_enabled(device_type, was)
        torch.set_autocast_dtype(device_type, which)
        torch.clear_autocast_cache()
    loss.backward()
    return loss.detach()
