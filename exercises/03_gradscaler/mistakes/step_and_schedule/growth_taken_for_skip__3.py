"""."""


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    scaler.scale(loss).backward()
    before = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    after = scaler.get_scale()
    if not after < before:
        scheduler.step()
    return after == before
