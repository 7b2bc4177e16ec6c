"""."""


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaler.scale(loss_d).backward()
    scaler.scale(loss_g).backward()
    for optimizer in (opt_d, opt_g):
        scaler.unscale_(optimizer)
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.grad.div_(scaler.get_scale())
    scaler.step(opt_d)
    scaler.step(opt_g)
    scaler.update()
