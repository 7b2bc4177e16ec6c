import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    @torch.autocast(device_type, dtype=dtype)
    def forward():
        return loss_fn(model(x), y)

    loss = forward()
    torch.autograd.backward(loss)
    with torch.no_grad():
        return loss.clone()
