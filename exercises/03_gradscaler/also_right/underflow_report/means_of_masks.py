"""FP32 means of boolean masks; normal is what is left."""

import torch


def underflow_report(grads, scale):
    nonzero = torch.cat([g[g != 0] for g in grads])
    if nonzero.numel() == 0:
        return dict.fromkeys(("overflow", "normal", "subnormal", "lost"), 0.0)
    h = (nonzero * scale).type(torch.half)
    tiny = torch.finfo(torch.half).smallest_normal
    overflow = torch.isinf(h).float().mean()
    lost = torch.logical_not(h).float().mean()
    subnormal = ((h != 0) & (h.abs() < tiny)).float().mean()
    normal = 1.0 - overflow - lost - subnormal
    return {"overflow": overflow.item(), "normal": float(normal), "subnormal": subnormal.item(), "lost": lost.item()}
