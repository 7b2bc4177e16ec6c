"""."""

import torch


def underflow_report(grads, scale):
    pooled = torch.cat([g.flatten() for g in grads])
    pooled = pooled[pooled != 0]
    n = max(1, len(pooled))
    half = (pooled / scale).half().abs()
    return {
        "lost": (half == 0).sum().item() / n,
        "subnormal": ((half > 0) & (half < 2**-14)).sum().item() / n,
        "normal": ((half >= 2**-14) & half.isfinite()).sum().item() / n,
        "overflow": half.isinf().sum().item() / n,
    }
