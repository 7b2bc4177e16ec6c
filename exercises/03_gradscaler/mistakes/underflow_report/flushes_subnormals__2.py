"""."""

import torch


def underflow_report(grads, scale):
    flat = torch.cat([g.flatten() for g in grads])
    flat = flat[flat != 0]
    n = max(1, len(flat))
    half = (flat * scale).half().abs()
    lost = half < 2**-14
    subnormal = (half > 0) & (half < 2**-14)
    return {
        "lost": lost.sum().item() / n,
        "subnormal": subnormal.sum().item() / n,
        "normal": (~lost & half.isfinite()).sum().item() / n,
        "overflow": half.isinf().sum().item() / n,
    }
