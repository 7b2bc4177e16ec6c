"""Both optimizers move half as far as they should: you divided the sum of the two losses by two. They are losses over
disjoint parameters, and each is to have its own full gradient; look at what goes backward."""


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaler.scale((loss_d + loss_g) / 2).backward()
    scaler.step(opt_d)
    scaler.step(opt_g)
    scaler.update()
