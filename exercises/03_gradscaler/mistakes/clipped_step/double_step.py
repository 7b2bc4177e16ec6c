"""The parameters moved twice in one call. The scaler's step (4) makes the optimizer step itself, or decides that it
must not; look for a second step beside it, of which the scaler knows nothing.
"""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    scaler.step(optimizer)
    optimizer.step()
    scaler.update()
    return float(norm)
