"""Every gradient was brought to the length max_norm, those too that were shorter, so small gradients were made longer.
Clipping only ever shortens: look at what your factor is when the norm is below max_norm."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    parameters = list(parameters)
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    for p in parameters:
        if p.grad is not None:
            p.grad *= max_norm / (norm + 1e-6)
    scaler.step(optimizer)
    scaler.update()
    return float(norm)
