"""."""


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    before = scaler.get_scale()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    stepped = scaler.get_scale() >= before
    if not stepped:
        scheduler.step()
    return stepped
