"""Compares the scale with what an overflow would have made of it."""


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    after_overflow = scaler.state_dict()["scale"] * scaler.get_backoff_factor()
    scaler.update()
    stepped = scaler.state_dict()["scale"] != after_overflow
    if stepped:
        scheduler.step()
    return stepped
