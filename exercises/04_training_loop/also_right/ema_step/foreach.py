"""With _foreach functions, in inference of the difference."""

import torch


def ema_step(ema_model, model, decay, stepped) -> None:
    if not stepped:
        return None
    with torch.no_grad():
        averages, weights = list(ema_model.parameters()), list(model.parameters())
        torch._foreach_add_(averages, torch._foreach_sub(weights, averages), alpha=1 - decay)
        for (_, mine), (_, buffer) in zip(ema_model.named_buffers(), model.named_buffers(), strict=True):
            mine[...] = buffer
