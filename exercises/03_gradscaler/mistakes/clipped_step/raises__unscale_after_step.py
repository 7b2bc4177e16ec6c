"""The scaler's step (4) unscales on its own where 3 is missing, and the optimizer has moved by then: unscaling and
clipping come too late. Look at the order of 3 and 4.
"""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    scaler.update()
    return float(norm)
