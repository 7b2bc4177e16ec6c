"""The gradients of one of the two were divided by the scale twice, once by you and once by the scaler, which does not
know of yours. Look at who does 3 for each of them."""


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaler.scale(loss_d).backward()
    scaler.scale(loss_g).backward()
    for group in opt_d.param_groups:
        for p in group["params"]:
            p.grad.div_(scaler.get_scale())
    scaler.step(opt_d)
    scaler.step(opt_g)
    scaler.update()
