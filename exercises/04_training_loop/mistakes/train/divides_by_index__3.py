"""The loss of each micro-batch was divided by its number in the whole list, so that later ones count less and less. In
a mean all micro-batches of a window count alike; look at the number that you divide by, and when it changes.
"""

import torch


def train(model, batches, optimizer, scheduler, scaler, loss_fn, device_type, accumulate=1, max_norm=None):
    losses, pending = [], []
    for i, (x, y) in enumerate(batches, 1):
        with torch.autocast(device_type, dtype=torch.float16):
            loss = loss_fn(model(x), y)
        pending.append(loss.item())
        scaler.scale(loss / i).backward()
        if i % accumulate == 0 or i == len(batches):
            if max_norm is not None:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            before = scaler.get_scale()
            scaler.step(optimizer)
            scaler.update()
            if scaler.get_scale() >= before:
                scheduler.step()
            optimizer.zero_grad()
            losses.append(sum(pending) / len(pending))
            pending = []
    return losses
