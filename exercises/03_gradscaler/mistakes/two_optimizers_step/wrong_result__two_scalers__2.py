"""."""

import torch


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    other = torch.amp.GradScaler("cpu", init_scale=scaler.get_scale())
    other.scale(loss_d).backward()
    scaler.scale(loss_g).backward()
    other.step(opt_d)
    scaler.step(opt_g)
    other.update()
    scaler.update()
