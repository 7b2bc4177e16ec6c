"""."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    parameters = list(parameters)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    for p in parameters:
        if p.grad is not None:
            p.grad.div_(scaler.get_scale())
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    scaler.step(optimizer)
    scaler.update()
    return float(norm)
