import torch


def evaluate(model, batches, loss_fn, device_type, dtype):
    flags = [(module, module.training) for module in model.modules()]
    thawed = [weight for weight in model.parameters() if weight.requires_grad]
    model.eval().requires_grad_(False)
    loss, right, samples = 0.0, 0, 0
    try:
        for x, y in batches:
            with torch.autocast(device_type, dtype=dtype):
                scores = model(x)
                loss += loss_fn(scores, y).item() * len(y)
            right += (scores.argmax(-1) == y).sum().item()
            samples += len(y)
    finally:
        for weight in thawed:
            weight.requires_grad_(True)
        for module, flag in flags:
            module.training = flag
    return {"loss": loss / samples, "accuracy": right / samples}
