"""An average of integers is no integer: the counters of a batch norm came through your loop too. Look at what a state
dict holds besides parameters, and what is asked for it.
"""

import torch


@torch.no_grad()
def ema_step(ema_model, model, decay, stepped):
    if not stepped:
        return
    weights = model.state_dict()
    for name, average in ema_model.state_dict().items():
        average.mul_(decay).add_(weights[name], alpha=1 - decay)
