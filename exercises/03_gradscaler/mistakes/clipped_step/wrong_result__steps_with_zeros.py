"""On an overflow you set the gradients to zero and step all the same, and with momentum or weight decay a step of zeros
moves the parameters. A skipped step is none: look at who decides whether the optimizer steps (4)."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    parameters = list(parameters)
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    if not torch.isfinite(norm):
        for p in parameters:
            if p.grad is not None:
                p.grad.zero_()
    optimizer.step()
    scaler.update()
    return float(norm)
