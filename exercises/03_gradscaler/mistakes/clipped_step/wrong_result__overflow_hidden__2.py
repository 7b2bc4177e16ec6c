"""On an overflow the inf and nan in the gradients were replaced after 3, so the norm that you return is finite, although
the step is skipped. Look at what you do to the gradients, and who has to see what is in them."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    parameters = list(parameters)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    for p in parameters:
        if p.grad is not None:
            p.grad.nan_to_num_(0.0, 0.0, 0.0)
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    scaler.step(optimizer)
    scaler.update()
    return float(norm)
