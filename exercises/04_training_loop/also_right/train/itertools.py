"""Windows from itertools; reads in the scaler's own state whether a gradient overflowed."""

from itertools import islice

import torch


def train(
    model, batches, optimizer, scheduler, scaler, loss_fn, device_type, accumulate=1, max_norm=None
) -> list[float]:
    losses = []
    rest = iter(batches)
    while window := list(islice(rest, accumulate)):
        loss = 0.0
        for x, y in window:
            with torch.autocast(device_type, dtype=torch.float16):
                part = loss_fn(model(x), y) / len(window)
            scaler.scale(part).backward()
            loss += float(part)
        scaler.unscale_(optimizer)
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm, error_if_nonfinite=False)
        found = scaler._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
        skipped = any(bool(flag) for flag in found.values())
        scaler.step(optimizer)
        scaler.update()
        if not skipped:
            scheduler.step()
        optimizer.zero_grad()
        losses.append(loss)
    return losses
