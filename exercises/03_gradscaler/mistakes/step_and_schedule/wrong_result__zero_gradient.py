"""A step whose gradients are all zero was taken for a skipped one. It changes no parameter and is a step all the same;
look at what you take as proof that the optimizer stepped.
"""

import torch


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    params = [p for group in optimizer.param_groups for p in group["params"]]
    before = [p.detach().clone() for p in params]
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    stepped = any(not torch.equal(old, p) for old, p in zip(before, params, strict=True))
    if stepped:
        scheduler.step()
    return stepped
