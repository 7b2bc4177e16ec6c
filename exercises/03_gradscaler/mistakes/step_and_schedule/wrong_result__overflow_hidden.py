"""On an overflow the inf and nan in the gradients were replaced, so the scaler found nothing: it stepped, and the scale
did not fall. An overflow has to stay visible until the scaler has decided (4); look at what you do to the gradients."""


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    before = scaler.get_scale()
    scaler.scale(loss).backward()
    for group in optimizer.param_groups:
        for p in group["params"]:
            if p.grad is not None:
                p.grad.nan_to_num_(0.0, 0.0, 0.0)
    scaler.step(optimizer)
    scaler.update()
    stepped = scaler.get_scale() >= before
    if stepped:
        scheduler.step()
    return stepped
