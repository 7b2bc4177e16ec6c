"""Forward for a whole window in one region, then one backward on its mean loss; clips scaled gradients to a scaled
max_norm.
"""

import torch


def train(
    model, batches, optimizer, scheduler, scaler, loss_fn, device_type, accumulate=1, max_norm=None
) -> list[float]:
    losses = []
    batches = list(batches)
    while batches:
        window, batches = batches[:accumulate], batches[accumulate:]
        optimizer.zero_grad()
        with torch.autocast(device_type, dtype=torch.float16):
            loss = torch.stack([loss_fn(model(x), y) for x, y in window]).mean()
        scaler.scale(loss).backward()
        scale = scaler.get_scale()
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm * scale)
        scaler.step(optimizer)
        scaler.update()
        if scaler.get_scale() >= scale:
            scheduler.step()
        losses.append(float(loss))
    return losses
