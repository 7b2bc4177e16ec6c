import torch


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    scaler = torch.amp.GradScaler(device_type, enabled=False)
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast(device_type, dtype=torch.bfloat16):
            loss = loss_fn(model(x), y)
            scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses
