"""Learns from a hook of the optimizer whether it stepped; clips by hand; the forward pass is a decorated function."""

import torch


def train(
    model, batches, optimizer, scheduler, scaler, loss_fn, device_type, accumulate=1, max_norm=None
) -> list[float]:
    stepped = []
    hook = optimizer.register_step_post_hook(lambda *_: stepped.append(True))

    @torch.autocast(device_type, dtype=torch.float16)
    def forward(x, y):
        return loss_fn(model(x), y)

    losses = []
    for start in range(0, len(batches), accumulate):
        window = batches[start : start + accumulate]
        stepped.clear()
        mean = 0.0
        for x, y in window:
            loss = forward(x, y) * (1 / len(window))
            scaler.scale(loss).backward()
            mean += loss.item()
        scaler.unscale_(optimizer)
        if max_norm is not None:
            grads = [p.grad for p in model.parameters()]
            norm = torch.cat([g.double().flatten() for g in grads]).norm().item()
            if norm > max_norm:
                for g in grads:
                    g.mul_(max_norm / norm)
        scaler.step(optimizer)
        scaler.update()
        if stepped:
            scheduler.step()
        model.zero_grad()
        losses.append(mean)
    hook.remove()
    return losses
