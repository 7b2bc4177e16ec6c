"""Each mean is multiplied by the size of its batch, and the sum is then divided by the number of batches. What you
weight with and what you divide by belong together: both count samples."""

import torch


def evaluate(model, batches, loss_fn, device_type, dtype):
    flags = [(module, module.training) for module in model.modules()]
    model.eval()
    loss, right, samples = 0.0, 0, 0
    try:
        with torch.no_grad(), torch.autocast(device_type, dtype=dtype):
            for x, y in batches:
                scores = model(x)
                loss += loss_fn(scores, y).item() * len(y)
                right += (scores.argmax(-1) == y).sum().item()
                samples += len(y)
    finally:
        for module, flag in flags:
            module.training = flag
    return {"loss": loss / len(batches), "accuracy": right / samples}
