"""."""


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    params = [p for group in optimizer.param_groups for p in group["params"][:1] if p.grad is not None]
    stepped = all(bool(p.grad.isfinite().all()) for p in params)
    scaler.step(optimizer)
    scaler.update()
    if stepped:
        scheduler.step()
    return stepped
