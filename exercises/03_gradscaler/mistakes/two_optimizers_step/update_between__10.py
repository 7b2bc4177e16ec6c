"""."""


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    for optimizer, loss in ((opt_g, loss_g), (opt_d, loss_d)):
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
