"""An optimizer stepped with gradients that had overflowed. Whether a step is made is the scaler's decision (4), for each
optimizer by itself; look at who makes each of the two steps in your code."""


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaler.scale(loss_d).backward()
    scaler.scale(loss_g).backward()
    scaler.unscale_(opt_d)
    scaler.unscale_(opt_g)
    opt_d.step()
    opt_g.step()
    scaler.update()
