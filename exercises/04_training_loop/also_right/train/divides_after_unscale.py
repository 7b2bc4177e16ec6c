"""Adds up undivided gradients and divides them after unscaling, which is always done; the loss is computed outside the
region.
"""

import torch


def train(
    model, batches, optimizer, scheduler, scaler, loss_fn, device_type, accumulate=1, max_norm=None
) -> list[float]:
    losses = []
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for start in range(0, len(batches), accumulate):
        window = batches[start : start + accumulate]
        window_losses = []
        for x, y in window:
            with torch.autocast(device_type, torch.float16):
                output = model(x)
            loss = loss_fn(output.float(), y)
            torch.autograd.backward(scaler.scale(loss))
            window_losses.append(loss.item())
        scaler.unscale_(optimizer)
        for p in parameters:
            p.grad.mul_(1 / len(window))
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(parameters, max_norm)
        scaler.step(optimizer)
        scale = scaler.get_scale()
        scaler.update()
        if scale <= scaler.get_scale():
            scheduler.step()
        for p in parameters:
            p.grad = None
        losses.append(sum(window_losses) / len(window_losses))
    return losses
