"""The scaler is told that a step is over only if the optimizer stepped, so an overflow never lowers the scale, and the
call after it finds what was noted about this one. Look at what 4 consists of, and when each half of it is called.
"""

import torch


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    for group in optimizer.param_groups:
        for p in group["params"]:
            if not torch.isfinite(p.grad).all():
                return False
    scaler.step(optimizer)
    scaler.update()
    scheduler.step()
    return True
