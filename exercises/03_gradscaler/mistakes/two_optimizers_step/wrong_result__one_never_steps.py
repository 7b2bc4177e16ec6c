"""One of the two optimizers never steps: its parameters stay what they were. Look at which of the lines of 2 and 4 your code
has for both, and which for one only."""


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaler.scale(loss_d).backward()
    scaler.scale(loss_g).backward()
    scaler.step(opt_d)
    scaler.update()
