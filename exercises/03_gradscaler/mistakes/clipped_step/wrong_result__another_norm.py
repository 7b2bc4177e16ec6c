"""The length that was compared with max_norm is not the one asked for: it is that of another norm than the 2-norm, the
root of the sum of all squares. Look at what your norm adds up, or at what its norm_type says."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm, norm_type=float("inf"))
    scaler.step(optimizer)
    scaler.update()
    return float(norm)
