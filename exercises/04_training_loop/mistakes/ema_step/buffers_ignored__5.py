"""A buffer that is registered with persistent=False was not copied: a state dict leaves it out, and a model computes
with it all the same. Look for what lists every buffer of a model.
"""

import torch


def ema_step(ema_model, model, decay, stepped):
    if not stepped:
        return
    with torch.no_grad():
        for average, weight in zip(ema_model.parameters(), model.parameters(), strict=True):
            average.mul_(decay).add_(weight, alpha=1 - decay)
        names = dict(model.named_parameters(remove_duplicate=False))
        state = model.state_dict()
        for name, mine in ema_model.state_dict().items():
            if name not in names:
                mine.copy_(state[name])
