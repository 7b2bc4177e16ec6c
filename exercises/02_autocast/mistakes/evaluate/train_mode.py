"""The model was still training while you evaluated it: dropout threw scores away, and batch norm used the batch's own
statistics and updated its running ones with your evaluation data. Look at the training flags inside your loop.
"""

import torch


def evaluate(model, batches, loss_fn, device_type, dtype):
    loss, right, samples = 0.0, 0, 0
    with torch.no_grad(), torch.autocast(device_type, dtype=dtype):
        for x, y in batches:
            scores = model(x)
            loss += loss_fn(scores, y).item() * len(y)
            right += (scores.argmax(-1) == y).sum().item()
            samples += len(y)
    return {"loss": loss / samples, "accuracy": right / samples}
