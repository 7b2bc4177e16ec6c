"""Looks at the gradients themselves, after the step has unscaled them."""

import torch


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    stepped = all(torch.isfinite(g).all().item() for g in grads)
    scaler.update()
    if stepped:
        scheduler.step()
    return stepped
