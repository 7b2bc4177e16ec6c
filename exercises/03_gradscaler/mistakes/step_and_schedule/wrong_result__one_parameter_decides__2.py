"""."""

import torch


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    stepped = True
    for group in optimizer.param_groups:
        for p in group["params"]:
            stepped = bool(torch.isfinite(p.grad).all())
    scaler.step(optimizer)
    scaler.update()
    if stepped:
        scheduler.step()
    return stepped
