"""On an overflow the inf and nan in the gradients were replaced, so the scaler found nothing: it stepped, and the scale
did not fall. An overflow has to stay visible until the scaler has decided (4); look at what you do to the gradients."""


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaler.scale(loss_d).backward()
    scaler.scale(loss_g).backward()
    for optimizer in (opt_d, opt_g):
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.grad.nan_to_num_(0.0, 0.0, 0.0)
    scaler.step(opt_d)
    scaler.step(opt_g)
    scaler.update()
