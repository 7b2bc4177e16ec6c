"""An overflow in the gradients of one optimizer stopped the step of the other one too. Look at whose gradients you ask
before each of the two steps, and at who asks them anyway.
"""

import torch


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaler.scale(loss_d).backward()
    scaler.scale(loss_g).backward()
    scaler.unscale_(opt_d)
    scaler.unscale_(opt_g)
    params = [p for optimizer in (opt_d, opt_g) for group in optimizer.param_groups for p in group["params"]]
    if all(torch.isfinite(p.grad).all() for p in params):
        scaler.step(opt_d)
        scaler.step(opt_g)
    scaler.update()
