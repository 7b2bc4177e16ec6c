"""A skipped step was taken for one that landed, because the scale did not fall by the factor that you expected. A scaler
may be made with any backoff_factor; look at what your comparison takes for granted."""


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    before = scaler.get_scale()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    stepped = scaler.get_scale() != before / 2
    if stepped:
        scheduler.step()
    return stepped
