"""The optimizer stepped with gradients that nothing had shortened, although they were longer than max_norm. Measuring a
norm does not change .grad; look at what does, and whether it does so before 4.
"""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    scaler.step(optimizer)
    scaler.update()
    return float(norm)
