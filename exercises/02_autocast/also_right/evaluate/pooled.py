import torch
from torch import nn


@torch.no_grad()
def evaluate(model: nn.Module, batches, loss_fn, device_type, dtype) -> dict:
    training = {name for name, module in model.named_modules() if module.training}
    sizes, losses, hits = [], [], []
    try:
        model.eval()
        for x, y in batches:
            with torch.autocast(device_type=device_type, dtype=dtype):
                scores = model(x)
                losses.append(loss_fn(scores, y))
            hits.append(scores.max(dim=1).indices.eq(y))
            sizes.append(y.shape[0])
    finally:
        for name, module in model.named_modules():
            module.training = name in training
    weights = torch.tensor(sizes, dtype=torch.float64)
    loss = (torch.stack(losses).double() * weights).sum() / weights.sum()
    return {"loss": loss.item(), "accuracy": torch.cat(hits).double().mean().item()}
