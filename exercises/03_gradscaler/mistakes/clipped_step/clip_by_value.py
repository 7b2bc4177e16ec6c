"""Single elements were cut off at max_norm, which bends the direction of the gradient. max_norm is the greatest length
of all gradients together, and all are shortened by one factor; look at what the function that clips does with its
number.
"""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    parameters = list(parameters)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.cat([p.grad.flatten() for p in parameters if p.grad is not None]).norm()
    torch.nn.utils.clip_grad_value_(parameters, max_norm)
    scaler.step(optimizer)
    scaler.update()
    return float(norm)
