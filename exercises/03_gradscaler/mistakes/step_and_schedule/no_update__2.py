"""."""

import torch


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    grads = [p.grad for group in optimizer.param_groups for p in group["params"]]
    stepped = all(bool(torch.isfinite(g).all()) for g in grads)
    scaler.step(optimizer)
    if stepped:
        scheduler.step()
    return stepped
