"""A skipped step was taken for one that landed: the overflow was in a parameter that you did not ask, or whose answer was
lost. One gradient that is not finite is enough to skip; follow what your check makes of all parameters and groups."""

import torch


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    scaler.scale(loss).backward()
    param = optimizer.param_groups[0]["params"][0]
    stepped = bool(torch.isfinite(param.grad).all())
    scaler.step(optimizer)
    scaler.update()
    if stepped:
        scheduler.step()
    return stepped
