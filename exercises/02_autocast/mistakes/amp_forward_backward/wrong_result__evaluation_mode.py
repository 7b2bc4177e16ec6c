"""The model is in evaluation mode while it computes the loss. Dropout and batch norm do something else there, and so
do its gradients; the mode is the caller's business, and was training."""

import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    model.eval()
    with torch.autocast(device_type, dtype=dtype):
        loss = loss_fn(model(x), y)
    loss.backward()
    return loss.detach()
