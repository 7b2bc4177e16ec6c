"""One call works and the next one does not: the scaler was never told that the round is over, so it still holds what it
noted about this one, and its scale cannot change. Look at what 4 consists of.
"""


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaler.scale(loss_d).backward()
    scaler.scale(loss_g).backward()
    scaler.step(opt_d)
    scaler.step(opt_g)
