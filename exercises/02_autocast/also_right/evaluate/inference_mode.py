import torch


def evaluate(model, batches, loss_fn, device_type, dtype):
    modules = list(model.modules())
    flags = [module.training for module in modules]
    totals = {"loss": 0.0, "accuracy": 0.0}
    samples = sum(len(y) for _, y in batches)
    try:
        for module in modules:
            module.training = False
        with torch.amp.autocast(device_type, dtype), torch.inference_mode():
            for x, y in batches:
                scores = model(x)
                share = len(y) / samples
                totals["loss"] += share * float(loss_fn(scores.float(), y))
                totals["accuracy"] += share * float((scores.argmax(1) == y).double().mean())
    finally:
        for module, flag in zip(modules, flags, strict=True):
            module.training = flag
    return totals
