"""A loss of your own choice is computed, and the loss_fn that you were given is never called. Cross-entropy is only
one of those that a caller may want."""

import torch
from torch.nn import functional as F


def evaluate(model, batches, loss_fn, device_type, dtype):
    flags = [(module, module.training) for module in model.modules()]
    model.eval()
    loss, right, samples = 0.0, 0, 0
    try:
        with torch.no_grad(), torch.autocast(device_type, dtype=dtype):
            for x, y in batches:
                scores = model(x)
                loss += F.cross_entropy(scores, y, reduction="sum").item()
                right += (scores.argmax(-1) == y).sum().item()
                samples += len(y)
    finally:
        for module, flag in flags:
            module.training = flag
    return {"loss": loss / samples, "accuracy": right / samples}
