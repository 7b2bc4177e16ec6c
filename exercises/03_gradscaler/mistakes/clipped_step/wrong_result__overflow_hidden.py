"""On an overflow the inf and nan in the gradients were replaced, so the scaler found nothing: it stepped, and the scale
did not fall. An overflow has to stay visible until the scaler has decided (4); look at what you do to the gradients."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    parameters = list(parameters)
    scaler.scale(loss).backward()
    for p in parameters:
        if p.grad is not None:
            p.grad.nan_to_num_(0.0, 0.0, 0.0)
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    scaler.step(optimizer)
    scaler.update()
    return float(norm)
