"""The model is in evaluation mode while it trains. Dropout drops nothing there, and batch norm neither uses nor
learns the statistics of your batches; who switched it over?"""

import torch


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    model.eval()
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast(device_type, dtype=torch.bfloat16):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
