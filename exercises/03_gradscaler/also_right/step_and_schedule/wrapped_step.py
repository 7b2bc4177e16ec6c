"""Replaces the optimizer's step for the length of the call by one that takes a note, as Accelerate does."""


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    original, called = optimizer.step, False

    def step(*args, **kwargs):
        nonlocal called
        called = True
        return original(*args, **kwargs)

    optimizer.step = step
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    optimizer.step = original
    scaler.update()
    if called:
        scheduler.step()
    return called
