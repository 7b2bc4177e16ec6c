"""The loss went backward without having been multiplied by the scale (2), and the scaler divided by it, so the step is
`scale` times too small. Look at which tensor backward is called on."""


def step_and_schedule(scaler, optimizer, scheduler, loss) -> bool:
    before = scaler.get_scale()
    scaler.scale(loss)
    loss.backward()
    scaler.step(optimizer)
    scaler.update()
    stepped = scaler.get_scale() >= before
    if stepped:
        scheduler.step()
    return stepped
