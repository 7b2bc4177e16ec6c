"""The update is right, and so is the norm, except on a skipped step, where a finite number comes back. It is to be inf or
nan there, so that whoever logs it sees the overflow: look at what you do with a norm that is not finite."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    scaler.step(optimizer)
    scaler.update()
    return norm.item() if torch.isfinite(norm) else 0.0
