"""Computes gradients with autograd.grad, and reads in the scaler's state whether they overflowed."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    parameters = list(parameters)
    for p, g in zip(parameters, torch.autograd.grad(scaler.scale(loss), parameters, allow_unused=True), strict=True):
        p.grad = g
    scaler.unscale_(optimizer)
    found_inf = scaler._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
    if any(flag.item() for flag in found_inf.values()):
        norm = float("nan")
    else:
        grads = [p.grad for p in parameters if p.grad is not None]
        norm = torch.linalg.vector_norm(torch.cat([g.reshape(-1) for g in grads])).item()
        for g in grads:
            g *= min(1.0, max_norm / (norm + 1e-6))
    scaler.step(optimizer)
    scaler.update()
    return norm
