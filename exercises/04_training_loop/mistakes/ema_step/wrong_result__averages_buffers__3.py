"""Buffers were averaged like weights, or not touched, as their dtype would have it. All of them are to be copied, of
integers and of floats; a state dict does not say what is a parameter and what is not. Look at what your loop takes
for one."""

import torch


@torch.no_grad()
def ema_step(ema_model, model, decay, stepped):
    if not stepped:
        return
    weights = model.state_dict()
    for name, average in ema_model.state_dict().items():
        if average.is_floating_point():
            average.mul_(decay).add_(weights[name], alpha=1 - decay)
