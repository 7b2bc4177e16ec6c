import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    with torch.autocast(device_type, dtype=dtype):
        loss = loss_fn(model(x), y)
    for weight, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
        weight.grad = gradient if weight.grad is None else weight.grad + gradient
    return loss.detach()
