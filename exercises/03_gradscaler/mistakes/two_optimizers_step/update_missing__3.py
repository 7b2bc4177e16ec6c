"""After an overflow the scaler was not told that the round is over, so the scale does not fall. A skipped step is no
reason to leave out the update; look at when it is called."""


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaler.scale(loss_d).backward()
    scaler.scale(loss_g).backward()
    for optimizer in (opt_d, opt_g):
        scaler.unscale_(optimizer)
    params = [p for o in (opt_d, opt_g) for group in o.param_groups for p in group["params"]]
    finite = all(bool(p.grad.isfinite().all()) for p in params if p.grad is not None)
    scaler.step(opt_d)
    scaler.step(opt_g)
    if finite:
        scaler.update()
