"""Reads the scale before everything and looks for a fall."""


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    old_scale = scaler.get_scale()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    skipped = scaler.get_scale() < old_scale
    if skipped:
        return False
    scheduler.step()
    return True
