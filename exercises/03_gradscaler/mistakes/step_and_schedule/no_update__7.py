"""After a step that was skipped the scaler was not told that it is over, so the scale does not fall. A skip is no reason
to leave out the second half of 4; look at when it is called."""


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    params = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    stepped = all(bool(p.grad.isfinite().all()) for p in params)
    scaler.step(optimizer)
    if stepped:
        scaler.update()
        scheduler.step()
    return stepped
