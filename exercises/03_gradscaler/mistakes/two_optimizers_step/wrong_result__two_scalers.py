"""An overflow that one of the two found did not lower the scale that you were given: that optimizer was stepped by a scaler
of its own, which is gone when the call ends. Look at how many scalers there are in your code."""

import torch


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    other = torch.amp.GradScaler("cpu", init_scale=scaler.get_scale())
    scaler.scale(loss_d).backward()
    other.scale(loss_g).backward()
    scaler.step(opt_d)
    other.step(opt_g)
    scaler.update()
    other.update()
