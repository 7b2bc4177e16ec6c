"""."""


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaler.scale(loss_d).backward()
    scaler.step(opt_d)
    loss_g.backward()
    opt_g.step()
    scaler.update()
