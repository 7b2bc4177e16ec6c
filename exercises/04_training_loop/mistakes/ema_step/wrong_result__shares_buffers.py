"""ema_model now holds the model's own buffers instead of copies: whatever training does to them later happens to both,
skipped steps included. Look at what an assignment of a tensor does.
"""

import torch


def ema_step(ema_model, model, decay, stepped):
    if not stepped:
        return
    with torch.no_grad():
        for average, weight in zip(ema_model.parameters(), model.parameters(), strict=True):
            average.mul_(decay).add_(weight, alpha=1 - decay)
        for ours, theirs in zip(ema_model.modules(), model.modules(), strict=True):
            for name, buffer in theirs.named_buffers(recurse=False):
                setattr(ours, name, buffer)
