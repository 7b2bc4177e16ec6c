"""."""

import torch


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaler.scale(loss_d).backward()
    scaler.scale(loss_g).backward()
    scaler.unscale_(opt_d)
    scaler.unscale_(opt_g)
    for group in opt_d.param_groups + opt_g.param_groups:
        for p in group["params"]:
            if not torch.isfinite(p.grad).all():
                return
    scaler.step(opt_d)
    scaler.step(opt_g)
    scaler.update()
