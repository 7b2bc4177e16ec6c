"""The update is right, but the norm that you return is off by a factor of the loss scale. Look at whether the gradients
were scaled or true when it was taken, and at what you did to the number afterwards.
"""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    parameters = list(parameters)
    scaler.scale(loss).backward()
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    scaler.step(optimizer)
    scaler.update()
    return float(norm)
