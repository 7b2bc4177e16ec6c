"""You clip between 2 and 3, while the gradients are still `scale` times too long: nearly every step is cut down to
max_norm, and the division that follows leaves `scale` times less than that. Look at what is in .grad at the moment
when it is measured against max_norm.
"""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    scaler.step(optimizer)
    scaler.update()
    return float(norm)
