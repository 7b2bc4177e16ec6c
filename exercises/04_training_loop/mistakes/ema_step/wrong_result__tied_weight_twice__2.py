"""."""

import torch


@torch.no_grad()
def ema_step(ema_model, model, decay, stepped):
    if not stepped:
        return
    for ours, theirs in zip(ema_model.modules(), model.modules(), strict=True):
        for name, weight in theirs.named_parameters(recurse=False):
            getattr(ours, name).lerp_(weight, 1 - decay)
    for mine, buffer in zip(ema_model.buffers(), model.buffers(), strict=True):
        mine.copy_(buffer)
