import torch


def train_bf16(model, batches, optimizer, loss_fn, device_type):
    losses = []
    with torch.autocast(device_type, dtype=torch.bfloat16):
        for x, y in batches:
            model.zero_grad(set_to_none=False)
            loss = loss_fn(model(x), y)
            loss.backward()
            optimizer.step()
            torch.clear_autocast_cache()
            losses.append(float(loss))
    return losses
