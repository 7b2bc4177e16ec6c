"""You do unscale (3), but after clipping: max_norm was applied to gradients that were `scale` times too long, and the
division then made short ones of what was left. Look at the order of the two lines.
"""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    return float(norm)
