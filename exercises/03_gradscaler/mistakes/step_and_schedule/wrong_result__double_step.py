"""The parameters moved twice in one call. The scaler's step (4) makes the optimizer step itself, or decides that it must
not; look for a second step beside it."""


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    before = scaler.get_scale()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    optimizer.step()
    scaler.update()
    stepped = scaler.get_scale() >= before
    if stepped:
        scheduler.step()
    return stepped
