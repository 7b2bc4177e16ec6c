"""The gradient of one parameter was shortened and the others were left as long as they were, although all of them
together are to be clipped. Look at what your clipping is given."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    parameters = list(parameters)
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    torch.nn.utils.clip_grad_norm_(parameters[:1], max_norm)
    scaler.step(optimizer)
    scaler.update()
    return float(norm)
