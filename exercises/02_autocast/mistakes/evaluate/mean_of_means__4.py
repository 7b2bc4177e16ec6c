"""."""

import torch


def evaluate(model, batches, loss_fn, device_type, dtype):
    flags = [(module, module.training) for module in model.modules()]
    model.eval()
    losses, accuracies = [], []
    try:
        with torch.no_grad(), torch.autocast(device_type, dtype=dtype):
            for x, y in batches:
                scores = model(x)
                losses.append(loss_fn(scores, y))
                accuracies.append((scores.argmax(-1) == y).double().mean())
    finally:
        for module, flag in flags:
            module.training = flag
    return {"loss": float(torch.stack(losses).mean()), "accuracy": float(torch.stack(accuracies).mean())}
