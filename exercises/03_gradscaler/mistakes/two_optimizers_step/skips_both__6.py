"""."""


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaler.scale(loss_d).backward()
    scaler.scale(loss_g).backward()
    scaler.unscale_(opt_g)
    params = [p for group in opt_g.param_groups for p in group["params"]]
    finite = all(bool(p.grad.isfinite().all()) for p in params if p.grad is not None)
    scaler.step(opt_g)
    if finite:
        scaler.step(opt_d)
    scaler.update()
