"""."""


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    parameters = list(parameters)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    total = 0.0
    for p in parameters:
        if p.grad is not None:
            p.grad.clamp_(-max_norm, max_norm)
            total += p.grad.square().sum().item()
    scaler.step(optimizer)
    scaler.update()
    return total**0.5
