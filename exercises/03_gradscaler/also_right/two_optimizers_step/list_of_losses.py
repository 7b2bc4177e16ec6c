"""scale takes a list, and so does autograd.backward."""

import torch


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    torch.autograd.backward(scaler.scale([loss_d, loss_g]))
    for optimizer in (opt_d, opt_g):
        scaler.unscale_(optimizer)
    for optimizer in (opt_d, opt_g):
        scaler.step(optimizer)
    scaler.update()
