"""Every step is taken for a skipped one: what you look at is the same whether the optimizer stepped or not. Nothing but
the update in 4 changes the scale, so look at when you read it; and what SGD's step gives back is None in any case.
"""


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    before = scaler.get_scale()
    stepped = scaler.get_scale() > before
    if stepped:
        scheduler.step()
    return stepped
