"""An optimizer stepped with gradients that were still multiplied by the scale: you stepped it yourself, and nobody
divided them. Look at who makes each of the two steps (4), and what else the scaler does there."""


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaler.scale(loss_d).backward()
    scaler.scale(loss_g).backward()
    scaler.step(opt_d)
    opt_g.step()
    scaler.update()
