import torch
from torch.func import functional_call, grad_and_value


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    def loss_of(parameters):
        with torch.autocast(device_type, dtype=dtype, cache_enabled=False):
            return loss_fn(functional_call(model, parameters, (x,)), y)

    weights = {name: weight.detach() for name, weight in model.named_parameters()}
    gradients, loss = grad_and_value(loss_of)(weights)
    for name, weight in model.named_parameters():
        weight.grad = gradients[name] if weight.grad is None else weight.grad + gradients[name]
    return loss.detach()
