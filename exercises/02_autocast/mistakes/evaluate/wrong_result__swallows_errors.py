"""A batch raised, and nobody was told: the numbers that came back leave samples out. The flags have to be put back in
any case, and the error has to come through all the same.
"""

import torch


def evaluate(model, batches, loss_fn, device_type, dtype):
    flags = [(module, module.training) for module in model.modules()]
    model.eval()
    loss, right, samples = 0.0, 0, 0
    with torch.no_grad(), torch.autocast(device_type, dtype=dtype):
        for x, y in batches:
            try:
                scores = model(x)
                loss += loss_fn(scores, y).item() * len(y)
                right += (scores.argmax(-1) == y).sum().item()
                samples += len(y)
            except Exception:
                continue
    for module, flag in flags:
        module.training = flag
    return {"loss": loss / samples, "accuracy": right / samples}
