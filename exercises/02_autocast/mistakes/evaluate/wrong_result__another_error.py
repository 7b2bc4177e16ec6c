"""Another error comes out than the one that the batch raised. Whoever called you may know what to do about that one,
and waits for its type; put the flags back, and let it pass."""

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
    except Exception as error:
        raise RuntimeError("evaluation failed") from error
    finally:
        for module, flag in flags:
            module.training = flag
    return {"loss": loss / samples, "accuracy": right / samples}
