"""."""

import torch


def evaluate(model, batches, loss_fn, device_type, dtype):
    loss, right, samples = 0.0, 0, 0
    with torch.inference_mode(), torch.autocast(device_type, dtype=dtype):
        for x, y in batches:
            scores = model(x)
            loss += loss_fn(scores, y).item() * x.shape[0]
            right += (scores.argmax(dim=1) == y).sum().item()
            samples += x.shape[0]
    return {"loss": loss / samples, "accuracy": right / samples}
