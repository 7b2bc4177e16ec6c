"""."""

import torch


def amp_forward_backward(model, x, y, loss_fn, device_type, dtype):
    @torch.autocast(device_type, dtype=dtype)
    def forward(batch):
        return model(batch)

    loss = loss_fn(forward(x), y)
    loss.backward()
    return loss.detach()
