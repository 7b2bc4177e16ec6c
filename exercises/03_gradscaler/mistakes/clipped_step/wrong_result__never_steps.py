"""The parameters never change: the optimizer is not stepped by anybody. In 4 the scaler decides whether to step, and it has
to be asked to."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm):
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    scaler.update()
    return norm.item()
