"""A step counts with you only if the scale grew with it. Most steps leave the scale as it was; look at which of the
three things that can happen to it means that the step was skipped.
"""


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    scaler.scale(loss).backward()
    before = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    stepped = scaler.get_scale() > before
    if stepped:
        scheduler.step()
    return stepped
