"""."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    optimizer.step()
    return float(norm)
