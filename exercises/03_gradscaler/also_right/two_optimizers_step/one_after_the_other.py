"""Each optimizer from its backward to its step, the generator first; one update at the end."""


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    try:
        for optimizer, loss in ((opt_g, loss_g), (opt_d, loss_d)):
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
    finally:
        scaler.update()
