"""."""

import torch


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    @torch.autocast(device_type, dtype=torch.bfloat16)
    def train():
        losses = []
        for x, y in batches:
            loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(float(loss))
        return losses

    return train()
