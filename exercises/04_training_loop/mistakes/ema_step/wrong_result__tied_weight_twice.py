"""A weight that the model uses under two names was averaged twice, so it moved too far. Look at how often your loop
comes across one and the same tensor: a state dict has it under each of its names, and so have the modules.
"""

import torch


@torch.no_grad()
def ema_step(ema_model, model, decay, stepped):
    if not stepped:
        return
    weights = model.state_dict()
    for name, average in ema_model.state_dict().items():
        if name.endswith(("weight", "bias")):
            average.mul_(decay).add_(weights[name], alpha=1 - decay)
        else:
            average.copy_(weights[name])
