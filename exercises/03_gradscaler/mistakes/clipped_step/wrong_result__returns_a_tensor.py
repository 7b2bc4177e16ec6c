"""The update is right, and the norm is the right number, but you return it as a tensor. The exercise asks for a Python
float: look at what clip_grad_norm_ returns."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    scaler.step(optimizer)
    scaler.update()
    return norm
