"""The scale comes in as the gradient that backward starts from."""

import torch


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    seed = scaler.scale(torch.ones_like(loss_d))
    loss_d.backward(gradient=seed)
    loss_g.backward(gradient=seed.clone())
    scaler.step(opt_g)
    scaler.step(opt_d)
    scaler.update()
