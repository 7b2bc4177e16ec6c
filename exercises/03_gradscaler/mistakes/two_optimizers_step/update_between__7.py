"""The second loss was multiplied by a scale that the update in between then overwrote, before that loss went backward.
Look at where update is called, and how often in one call.
"""


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaled_d, scaled_g = scaler.scale(loss_d), scaler.scale(loss_g)
    scaled_d.backward()
    scaler.step(opt_d)
    scaler.update()
    scaled_g.backward()
    scaler.step(opt_g)
    scaler.update()
