"""You train a model whose weights are BF16 and cast them back at the end. Autocast keeps the weights, their gradients and the
update in FP32; in BF16 an update smaller than half a percent of a weight is lost."""

import torch


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    model.to(torch.bfloat16)
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x.to(torch.bfloat16)).float(), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.float()
    return losses
