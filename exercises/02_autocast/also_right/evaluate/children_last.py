import torch


def evaluate(model, batches, loss_fn, device_type, dtype):
    flags = [(module, module.training) for module in model.modules()]
    model.train(False)
    try:
        return measured(model, batches, loss_fn, device_type, dtype)
    finally:
        for module, flag in flags:  # parents come before their children
            module.train(flag)


@torch.no_grad()
def measured(model, batches, loss_fn, device_type, dtype):
    rows = []
    for x, y in batches:
        with torch.autocast(device_type, dtype=dtype):
            scores = model(x)
            rows.append((len(y), loss_fn(scores, y).item(), (scores.argmax(-1) == y).sum().item()))
    samples = sum(n for n, _, _ in rows)
    return {
        "loss": sum(n * loss for n, loss, _ in rows) / samples,
        "accuracy": sum(right for _, _, right in rows) / samples,
    }
