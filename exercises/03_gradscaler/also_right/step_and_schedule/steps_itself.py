"""Unscales, and makes the optimizer step itself if the sum of all magnitudes is finite."""

import math


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    total = sum(p.grad.abs().sum().item() for group in optimizer.param_groups for p in group["params"])
    landed = math.isfinite(total)
    if landed:
        optimizer.step()
    scaler.update()
    if landed:
        scheduler.step()
    return landed
