"""One call works and the next one does not: the scaler was never told that the step is over, so it still holds what it
noted about this one, and its scale cannot change. Look at what 4 consists of.
"""


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    scaler.scale(loss).backward()
    before = scaler.get_scale()
    scaler.step(optimizer)
    stepped = scaler.get_scale() >= before
    if stepped:
        scheduler.step()
    return stepped
