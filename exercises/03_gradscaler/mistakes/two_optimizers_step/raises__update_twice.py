"""The scaler was asked to update twice for one round, and the second time there is nothing that it could go by. One update
ends the round for both optimizers; look at how often you call it."""


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaler.scale(loss_d).backward()
    scaler.scale(loss_g).backward()
    scaler.step(opt_d)
    scaler.step(opt_g)
    scaler.update()
    scaler.update()
