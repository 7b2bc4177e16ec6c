"""."""


def two_optimizers_step(scaler, opt_d, opt_g, loss_d, loss_g) -> None:
    scaler.scale(loss_d).backward()
    scaler.scale(loss_g).backward()
    finite = True
    for optimizer in (opt_d, opt_g):
        for group in optimizer.param_groups:
            finite = finite and all(bool(p.grad.isfinite().all()) for p in group["params"])
    if finite:
        scaler.step(opt_d)
        scaler.step(opt_g)
    scaler.update()
