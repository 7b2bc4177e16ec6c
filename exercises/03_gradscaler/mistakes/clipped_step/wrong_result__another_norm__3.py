"""."""

import math


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = sum(float(g.norm()) for g in grads)
    if math.isfinite(norm) and norm > max_norm:
        for g in grads:
            g.mul_(max_norm / norm)
    scaler.step(optimizer)
    scaler.update()
    return norm
