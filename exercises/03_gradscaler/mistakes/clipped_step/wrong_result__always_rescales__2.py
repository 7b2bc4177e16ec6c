"""."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    parameters = list(parameters)
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    for p in parameters:
        if p.grad is not None:
            p.grad *= max_norm / norm
    scaler.step(optimizer)
    scaler.update()
    return float(norm)
