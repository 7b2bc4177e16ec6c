"""The optimizer says itself that it stepped, through a hook."""


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    landed = []
    handle = optimizer.register_step_post_hook(lambda *_: landed.append(True))
    try:
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    finally:
        handle.remove()
    if landed:
        scheduler.step()
    return bool(landed)
