"""The scaler is told that a step is over only if the optimizer stepped, so an overflow never lowers the scale, and the
call after it finds what was noted about this one. Look at what 4 consists of, and when each half of it is called.
"""

import torch


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    stepped = all(bool(torch.isfinite(p.grad).all()) for group in optimizer.param_groups for p in group["params"])
    if stepped:
        scaler.update()
        scheduler.step()
    return stepped
