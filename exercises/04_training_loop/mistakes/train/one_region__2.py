"""."""

import torch
from torch import nn


def train(model, batches, optimizer, scheduler, scaler, loss_fn, device_type, accumulate=1, max_norm=None):
    @torch.autocast(device_type, dtype=torch.float16)
    def one_pass():
        losses, pending = [], []
        for i, (x, y) in enumerate(batches):
            window = min(accumulate, len(batches) - i + i % accumulate)
            loss = loss_fn(model(x), y)
            pending.append(loss.item())
            scaler.scale(loss / window).backward()
            if len(pending) == window:
                if max_norm is not None:
                    scaler.unscale_(optimizer)
                    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
                scaler.step(optimizer)
                scale = scaler.get_scale()
                scaler.update()
                if scaler.get_scale() >= scale:
                    scheduler.step()
                optimizer.zero_grad()
                losses.append(sum(pending) / window)
                pending = []
        return losses

    return one_pass()
