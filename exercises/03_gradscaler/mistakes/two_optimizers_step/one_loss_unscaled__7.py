"""Neither of the two losses went backward with the scale (2), and the gradients of both were divided by it. Follow each
loss from its backward to its step, and look at what becomes of what scale() gives back."""


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaler.scale(loss_d)
    scaler.scale(loss_g)
    loss_d.backward()
    loss_g.backward()
    scaler.step(opt_d)
    scaler.step(opt_g)
    scaler.update()
