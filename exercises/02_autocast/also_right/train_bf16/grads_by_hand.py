import torch


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    weights, losses = list(model.parameters()), []
    for x, y in batches:
        with torch.autocast(device_type, dtype=torch.bfloat16):
            loss = loss_fn(model(x), y)
        for weight, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
            weight.grad = gradient
        optimizer.step()
        losses.append(loss.item())
    return losses
