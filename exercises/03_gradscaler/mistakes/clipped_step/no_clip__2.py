"""."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    norm = torch.stack([p.grad.norm() for p in parameters if p.grad is not None]).norm()
    scaler.step(optimizer)
    scaler.update()
    return norm.item()
