"""Norm and factor by hand, in FP64, without the epsilon of clip_grad_norm_."""

import math

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = math.sqrt(sum(g.double().square().sum().item() for g in grads))
    if norm > max_norm:
        with torch.no_grad():
            for g in grads:
                g.mul_(max_norm / norm)
    scaler.step(optimizer)
    scaler.update()
    return norm
