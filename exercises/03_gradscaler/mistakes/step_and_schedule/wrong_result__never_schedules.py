"""What you return is right, and the learning rate stays as it was when a step landed. Look at what your code does with
the scheduler, and in which case."""


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    before = scaler.get_scale()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    stepped = scaler.get_scale() >= before
    return stepped
