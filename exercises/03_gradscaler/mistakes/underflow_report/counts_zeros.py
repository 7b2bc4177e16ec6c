"""Elements that were zero before the cast are counted: FP16 did not lose them. Look at what you count as lost and
at what you divide by, on an input with many zeros."""

import torch


def underflow_report(grads, scale):
    flat = torch.cat([g.flatten() for g in grads])
    half = (flat * scale).half().abs()
    n = flat.numel()
    return {
        "lost": (half == 0).sum().item() / n,
        "subnormal": ((half > 0) & (half < 2**-14)).sum().item() / n,
        "normal": ((half >= 2**-14) & half.isfinite()).sum().item() / n,
        "overflow": half.isinf().sum().item() / n,
    }
