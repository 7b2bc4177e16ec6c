"""."""

import torch


def train(model, batches, optimizer, scheduler, scaler, loss_fn, device_type, accumulate=1, max_norm=None):
    losses, running = [], 0.0
    for i, (x, y) in enumerate(batches):
        micro_step = i % accumulate
        with torch.autocast(device_type, dtype=torch.float16):
            loss = loss_fn(model(x), y) / (micro_step + 1)
        scaler.scale(loss).backward()
        running += loss.item()
        if micro_step == accumulate - 1 or i == len(batches) - 1:
            if max_norm is not None:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            before = scaler.get_scale()
            scaler.step(optimizer)
            scaler.update()
            if scaler.get_scale() >= before:
                scheduler.step()
            optimizer.zero_grad()
            losses.append(running)
            running = 0.0
    return losses
