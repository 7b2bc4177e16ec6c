"""Tensors came back where Python numbers were asked for: they live on the device, they compare and print as tensors,
and a log of them is no JSON. Read the numbers out of them at the end.
"""

import torch


def evaluate(model, batches, loss_fn, device_type, dtype):
    flags = [(module, module.training) for module in model.modules()]
    model.eval()
    loss, right, samples = 0.0, 0, 0
    try:
        with torch.no_grad(), torch.autocast(device_type, dtype=dtype):
            for x, y in batches:
                scores = model(x)
                loss += loss_fn(scores, y) * len(y)
                right += (scores.argmax(-1) == y).sum()
                samples += len(y)
    finally:
        for module, flag in flags:
            module.training = flag
    return {"loss": loss / samples, "accuracy": right / samples}
