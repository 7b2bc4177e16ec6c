"""The losses are added up in the dtype of the region, which has few digits: in FP16 or BF16 a sum soon no longer
notices what is added to it. Autocast is for the model; a Python number has room."""

import torch


def evaluate(model, batches, loss_fn, device_type, dtype):
    flags = [(module, module.training) for module in model.modules()]
    model.eval()
    loss, right, samples = torch.zeros((), dtype=dtype), 0, 0
    try:
        with torch.no_grad(), torch.autocast(device_type, dtype=dtype):
            for x, y in batches:
                scores = model(x)
                loss += (loss_fn(scores, y) * len(y)).to(dtype)
                right += (scores.argmax(-1) == y).sum().item()
                samples += len(y)
    finally:
        for module, flag in flags:
            module.training = flag
    return {"loss": (loss / samples).item(), "accuracy": right / samples}
