"""."""

import torch


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaler.scale(loss_d + loss_g).backward()
    groups = opt_d.param_groups + opt_g.param_groups
    if any(not torch.isfinite(p.grad).all() for group in groups for p in group["params"]):
        return
    scaler.step(opt_d)
    scaler.step(opt_g)
    scaler.update()
