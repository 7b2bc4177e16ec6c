"""Gradients from autograd.grad, whether they overflowed from the scaler's state."""

import torch


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    for optimizer, loss in zip([opt_d, opt_g], [loss_d, loss_g], strict=True):
        params = [p for group in optimizer.param_groups for p in group["params"]]
        for p, grad in zip(params, torch.autograd.grad(scaler.scale(loss), params), strict=True):
            p.grad = grad
        scaler.unscale_(optimizer)
        found_inf = scaler._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
        if not any(found_inf.values()):
            optimizer.step()
    scaler.update()
