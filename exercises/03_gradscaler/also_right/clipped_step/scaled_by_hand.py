"""Everything on the scaled gradients, of the optimizer's groups: norm by hand, one factor, true norm returned."""

import torch


def clipped_step(scaler, optimizer, loss, parameters, max_norm) -> float:
    scaled = scaler.scale(loss)
    scaled.backward()
    grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    norm = torch.stack(torch._foreach_norm(grads)).norm().item() / scaler.get_scale()
    torch._foreach_mul_(grads, min(1.0, max_norm / (norm + 1e-12)))
    scaler.step(optimizer)
    scaler.update()
    return norm
