"""."""

import torch


def evaluate(model, batches, loss_fn, device_type, dtype):
    flags = [(module, module.training) for module in model.modules()]
    model.eval()
    loss, right, samples = 0.0, 0, 0
    try:
        with torch.autocast(device_type, dtype=dtype):
            for x, y in batches:
                scores = model(x)
                with torch.no_grad():
                    loss += float(loss_fn(scores, y)) * len(y)
                    right += int((scores.argmax(-1) == y).sum())
                samples += len(y)
    finally:
        for module, flag in flags:
            module.training = flag
    return {"loss": loss / samples, "accuracy": right / samples}
