"""."""


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaler.scale(loss_d).backward()
    scaler.scale(loss_g).backward()
    scaler.unscale_(opt_d)
    scaler.unscale_(opt_g)
    scaler.step(opt_d)
    scaler.update()
    scaler.step(opt_g)
    scaler.update()
