"""Each forward pass records a graph that nobody will go back through, and a sum of its losses keeps them all: memory
grows with every batch until it runs out. Evaluation mode does not switch gradients off; look for what does.
"""

import torch


def evaluate(model, batches, loss_fn, device_type, dtype):
    flags = [(module, module.training) for module in model.modules()]
    model.eval()
    loss, right, samples = 0.0, 0, 0
    try:
        with torch.autocast(device_type, dtype=dtype):
            for x, y in batches:
                scores = model(x)
                loss += loss_fn(scores, y).item() * len(y)
                right += (scores.argmax(-1) == y).sum().item()
                samples += len(y)
    finally:
        for module, flag in flags:
            module.training = flag
    return {"loss": loss / samples, "accuracy": right / samples}
