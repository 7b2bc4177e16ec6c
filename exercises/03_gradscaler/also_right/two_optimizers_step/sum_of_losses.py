"""One backward for the sum: the parameters are disjoint."""


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaler.scale(loss_d + loss_g).backward()
    scaler.step(opt_d)
    scaler.step(opt_g)
    scaler.update()
