"""."""


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaler.scale(loss_d).backward()
    scaler.scale(loss_g).backward()
    opt_d.step()
    scaler.step(opt_g)
    scaler.update()
