"""The scheduler advanced before the step, so that the step was made with the learning rate of the next one. Look at the
order of your lines."""


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    before = scaler.get_scale()
    scaler.scale(loss).backward()
    scheduler.step()
    scaler.step(optimizer)
    scaler.update()
    stepped = scaler.get_scale() >= before
    return stepped
