"""The gradients were divided by the scale twice, once by you and once by the scaler, which does not know of yours: a
step is `scale` times too small. Look at who does 3."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    parameters = list(parameters)
    scaler.scale(loss).backward()
    for p in parameters:
        if p.grad is not None:
            p.grad.div_(scaler.get_scale())
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    scaler.step(optimizer)
    scaler.update()
    return float(norm)
