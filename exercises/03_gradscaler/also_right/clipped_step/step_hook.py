"""Clips in a hook that the optimizer calls just before it steps: after the division, and only if it steps."""

import math

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    norms = [math.inf]

    def clip(*_):
        norms.append(float(torch.nn.utils.clip_grad_norm_(parameters, max_norm)))

    torch.autograd.backward(scaler.scale(loss))
    handle = optimizer.register_step_pre_hook(clip)
    scaler.step(optimizer)
    handle.remove()
    scaler.update()
    return norms[-1]
