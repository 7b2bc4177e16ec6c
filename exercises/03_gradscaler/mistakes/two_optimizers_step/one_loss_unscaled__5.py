"""."""

import torch


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaler.scale(loss_d).backward()
    loss_g.backward()
    scaler.step(opt_d)
    if all(torch.isfinite(p.grad).all() for group in opt_g.param_groups for p in group["params"]):
        opt_g.step()
    scaler.update()
