"""One flat loop; a window ends at a multiple of accumulate or at the end of the list."""

import torch


def train(
    model, batches, optimizer, scheduler, scaler, loss_fn, device_type, accumulate=1, max_norm=None
) -> list[float]:
    model.train()
    optimizer.zero_grad(set_to_none=True)
    losses, pending, last = [], [], len(batches) - 1
    for i, (x, y) in enumerate(batches):
        size = min(accumulate, len(batches) - i // accumulate * accumulate)
        with torch.amp.autocast(device_type=device_type, dtype=torch.float16):
            output = model(x.to(device_type))
            loss = loss_fn(output, y.to(device_type))
        scaler.scale(loss / size).backward()
        pending.append(loss.detach())
        if (i + 1) % accumulate and i != last:
            continue
        if max_norm:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        if not scaler.get_scale() < before:
            scheduler.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(torch.stack(pending).mean().item())
        pending = []
    return losses
