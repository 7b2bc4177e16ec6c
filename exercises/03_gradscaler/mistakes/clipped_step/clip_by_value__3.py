"""."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    parameters = list(parameters)
    scaler.scale(loss).backward()
    norm = torch.cat([p.grad.flatten() for p in parameters if p.grad is not None]).norm()
    torch.nn.utils.clip_grad_value_(parameters, max_norm)
    scaler.step(optimizer)
    scaler.update()
    return float(norm)
