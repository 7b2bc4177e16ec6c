"""Nothing comes back from a call in which the optimizer stepped. The exercise asks for True or False in every case; look at
how each way through your function ends."""


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    before = scaler.get_scale()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    if scaler.get_scale() < before:
        return False
    scheduler.step()
