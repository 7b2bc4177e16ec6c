"""."""

import torch


def underflow_report(grads, scale):
    flat = torch.cat([g.flatten() for g in grads])
    if not flat.any():
        return dict.fromkeys(["lost", "subnormal", "normal", "overflow"], 0.0)
    half = (flat * scale).half().abs()
    tiny = torch.finfo(torch.float16).tiny
    return {
        "lost": (half == 0).float().mean().item(),
        "subnormal": ((half > 0) & (half < tiny)).float().mean().item(),
        "normal": ((half >= tiny) & half.isfinite()).float().mean().item(),
        "overflow": half.isinf().float().mean().item(),
    }
