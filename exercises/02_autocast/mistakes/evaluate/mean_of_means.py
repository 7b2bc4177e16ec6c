"""You average the batches, and a sample in a small batch counts more than one in a large batch. Both numbers are
asked for over all samples; what does the mean of a batch have to be weighted with?
"""

import torch


def evaluate(model, batches, loss_fn, device_type, dtype):
    flags = [(module, module.training) for module in model.modules()]
    model.eval()
    losses, accuracies = [], []
    try:
        with torch.no_grad(), torch.autocast(device_type, dtype=dtype):
            for x, y in batches:
                scores = model(x)
                losses.append(loss_fn(scores, y).item())
                accuracies.append((scores.argmax(-1) == y).float().mean().item())
    finally:
        for module, flag in flags:
            module.training = flag
    return {"loss": sum(losses) / len(losses), "accuracy": sum(accuracies) / len(accuracies)}
