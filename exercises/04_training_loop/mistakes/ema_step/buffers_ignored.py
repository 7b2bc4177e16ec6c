"""The buffers of ema_model are those that it was made with: running statistics of weights that are long gone. Print
`dict(model.named_buffers())`, and look at what you do with them.
"""

import torch


def ema_step(ema_model, model, decay, stepped):
    if not stepped:
        return
    with torch.no_grad():
        for average, weight in zip(ema_model.parameters(), model.parameters(), strict=True):
            average.mul_(decay).add_(weight, alpha=1 - decay)
