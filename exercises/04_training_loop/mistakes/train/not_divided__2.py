"""."""

import torch


def train(model, batches, optimizer, scheduler, scaler, loss_fn, device_type, accumulate=1, max_norm=None):
    losses, pending = [], []
    for i, (x, y) in enumerate(batches, 1):
        with torch.autocast(device_type=device_type, dtype=torch.float16):
            loss = loss_fn(model(x), y)
        pending.append(loss.item())
        scaler.scale(loss).backward()
        if i % accumulate == 0 or i == len(batches):
            if max_norm:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            old = scaler.get_scale()
            scaler.step(optimizer)
            scaler.update()
            if not scaler.get_scale() < old:
                scheduler.step()
            optimizer.zero_grad(set_to_none=True)
            losses.append(sum(pending))
            pending = []
    return losses
