"""The optimizer stepped with gradients that had overflowed. Whether a step is made is the scaler's decision (4); look at
who makes it in your code."""


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    before = scaler.get_scale()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    optimizer.step()
    scaler.update()
    stepped = scaler.get_scale() >= before
    if stepped:
        scheduler.step()
    return stepped
