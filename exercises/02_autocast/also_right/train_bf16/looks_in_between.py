import torch


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    model.train()
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast(device_type, dtype=torch.bfloat16):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        with torch.no_grad():
            print(f"{loss_fn(model(x), y).item():.4f} on the same batch after the step")
    return losses
