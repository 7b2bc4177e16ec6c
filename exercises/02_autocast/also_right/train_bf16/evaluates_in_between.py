import torch


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    losses = []
    for x, y in batches:
        model.train()
        optimizer.zero_grad()
        with torch.autocast(device_type, dtype=torch.bfloat16):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        model.eval()
        with torch.inference_mode():
            print(f"{loss_fn(model(x), y).item():.4f} in evaluation mode")
    model.train()
    return losses
