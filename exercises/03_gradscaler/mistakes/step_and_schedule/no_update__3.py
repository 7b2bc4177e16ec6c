"""."""

import torch


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    stepped = True
    for group in optimizer.param_groups:
        for p in group["params"]:
            if not torch.isfinite(p.grad).all():
                stepped = False
    if stepped:
        scheduler.step()
    return stepped
