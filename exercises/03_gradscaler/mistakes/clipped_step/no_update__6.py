"""After a step that was skipped the scaler was not told that it is over, so the scale does not fall. A skip is no reason
to leave out the second half of 4; look at when it is called."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    scaler.step(optimizer)
    if norm.isfinite():
        scaler.update()
    return float(norm)
