"""."""


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    loss_d.backward()
    opt_d.step()
    scaler.scale(loss_g).backward()
    scaler.step(opt_g)
    scaler.update()
