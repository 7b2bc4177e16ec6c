"""."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    parameters = list(parameters)
    scaler.scale(loss).backward()
    torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    norm = torch.cat([p.grad.flatten() for p in parameters if p.grad is not None]).norm()
    scaler.step(optimizer)
    scaler.update()
    return float(norm)
