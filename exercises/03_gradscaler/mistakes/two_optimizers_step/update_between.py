"""The scaler was updated between the two steps, so where the scale changes there the two are measured with different
rulers, and what one optimizer found counts for another round or as a round of its own. Look at where update is
called, and how often in one call.
"""


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaler.scale(loss_d).backward()
    scaler.step(opt_d)
    scaler.update()
    scaler.scale(loss_g).backward()
    scaler.step(opt_g)
    scaler.update()
