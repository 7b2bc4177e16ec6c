"""."""

import torch


@torch.no_grad()
def ema_step(ema_model, model, decay, stepped):
    if not stepped:
        return
    done = set()
    weights = model.state_dict()
    for name, average in ema_model.state_dict().items():
        if average.is_floating_point() and average.data_ptr() not in done:
            done.add(average.data_ptr())
            average.mul_(decay).add_(weights[name], alpha=1 - decay)
