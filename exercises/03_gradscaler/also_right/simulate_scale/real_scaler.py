"""PyTorch's own scaler on one parameter, its gradient an inf where a step is to overflow."""

import torch


def simulate_scale(found_inf, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
    scaler = torch.amp.GradScaler("cpu", init_scale, growth_factor, backoff_factor, growth_interval)
    scaler.scale(torch.zeros(()))
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    history = []
    for overflow in found_inf:
        weight.grad = torch.tensor([float("inf") if overflow else 0.0])
        scaler.step(optimizer)
        scaler.update()
        history.append(scaler.get_scale())
    return history
