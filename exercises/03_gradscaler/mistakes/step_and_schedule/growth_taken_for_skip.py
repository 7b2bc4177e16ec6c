"""A step that landed was taken for a skipped one, in a call in which the scale grew. The scale changes for two reasons;
look at which of them your comparison sees.
"""


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    scaler.scale(loss).backward()
    scale = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    skipped = scale != scaler.get_scale()
    if not skipped:
        scheduler.step()
    return not skipped
