"""A step that was skipped because a gradient was nan was taken for one that landed, and the scheduler advanced. Your
check finds inf; try it on torch.tensor(float("nan"))."""


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    params = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    stepped = all(bool(not p.grad.isinf().any()) for p in params)
    scaler.step(optimizer)
    scaler.update()
    if stepped:
        scheduler.step()
    return stepped
