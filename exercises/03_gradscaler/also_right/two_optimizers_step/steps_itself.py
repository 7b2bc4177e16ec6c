"""Unscales both and makes each step itself if its own gradients are finite."""

import torch


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaler.scale(loss_g).backward()
    scaler.scale(loss_d).backward()
    for optimizer in (opt_d, opt_g):
        scaler.unscale_(optimizer)
        grads = [p.grad for group in optimizer.param_groups for p in group["params"]]
        if all(torch.isfinite(g).all() for g in grads):
            optimizer.step()
    scaler.update()
