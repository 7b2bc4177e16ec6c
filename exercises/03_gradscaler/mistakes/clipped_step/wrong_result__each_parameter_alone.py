"""Every parameter's gradient was clipped on its own, which bends the direction of the step. max_norm is the greatest
length of all gradients taken together; look at what your clipping is given at a time.
"""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    total = 0.0
    for p in parameters:
        if p.grad is not None:
            total += torch.nn.utils.clip_grad_norm_(p, max_norm).item() ** 2
    scaler.step(optimizer)
    scaler.update()
    return total**0.5
