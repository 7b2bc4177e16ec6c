"""."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm):
    parameters = list(parameters)
    scale = scaler.get_scale()
    scaler.scale(loss).backward()
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = torch.cat([g.flatten() for g in grads]).norm().item() / scale
    for grad in grads:
        grad.clamp_(-max_norm * scale, max_norm * scale)
    scaler.step(optimizer)
    scaler.update()
    return norm
