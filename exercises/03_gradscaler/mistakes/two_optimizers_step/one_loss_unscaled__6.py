"""."""

import torch


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    loss_d.backward()
    scaler.scale(loss_g).backward()
    if all(torch.isfinite(p.grad).all() for group in opt_d.param_groups for p in group["params"]):
        opt_d.step()
    scaler.step(opt_g)
    scaler.update()
