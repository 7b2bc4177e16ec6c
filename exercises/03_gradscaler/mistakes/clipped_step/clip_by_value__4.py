"""."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    parameters = list(parameters)
    scaler.scale(loss).backward()
    scale = scaler.get_scale()
    norm = torch.stack([p.grad.norm() for p in parameters if p.grad is not None]).norm() / scale
    torch.nn.utils.clip_grad_value_(parameters, max_norm)
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    return float(norm)
