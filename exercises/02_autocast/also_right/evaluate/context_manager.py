import contextlib

import torch


@contextlib.contextmanager
def evaluating(model):
    before = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield model
    finally:
        for module, training in before:
            module.training = training


def evaluate(model, batches, loss_fn, device_type, dtype):
    loss = right = count = 0
    with evaluating(model), torch.no_grad():
        for x, y in batches:
            with torch.autocast(device_type, dtype=dtype):
                scores = model(x)
            loss += loss_fn(scores.float(), y).item() * y.numel()
            right += torch.eq(scores.topk(1).indices[:, 0], y).sum().item()
            count += y.numel()
    return dict(loss=loss / count, accuracy=right / count)
