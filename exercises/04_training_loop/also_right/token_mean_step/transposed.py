"""Classes as the second dimension, as cross_entropy takes them; reduction none."""

import torch
from torch.nn import functional as F


def token_mean_step(model, micro_batches, optimizer, scaler, device_type, ignore_index=-100) -> float:
    valid = sum((y != ignore_index).sum() for _, y in micro_batches).item()
    mean = 0.0
    for x, y in micro_batches:
        with torch.autocast(device_type, dtype=torch.float16):
            logits = model(x)
            each = F.cross_entropy(
                logits.transpose(1, -1), y.transpose(1, -1), ignore_index=ignore_index, reduction="none"
            )
        loss = each.sum() / valid
        torch.autograd.backward(scaler.scale(loss))
        mean += float(loss)
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    model.zero_grad()
    return mean
