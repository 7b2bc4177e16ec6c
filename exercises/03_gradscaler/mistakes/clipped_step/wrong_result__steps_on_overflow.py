"""The optimizer stepped with gradients that had overflowed. Whether a step is made is the scaler's decision (4); look
at who makes it in your code.
"""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    optimizer.step()
    scaler.update()
    return float(norm)
