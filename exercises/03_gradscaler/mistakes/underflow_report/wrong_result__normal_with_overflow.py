"""Elements that overflow to inf are counted among the normal ones as well, so the four fractions add up to more than 1. Look
at what your comparison for `normal` says about inf."""

import torch


def underflow_report(grads, scale):
    flat = torch.cat([g.flatten() for g in grads])
    flat = flat[flat != 0]
    n = max(1, len(flat))
    half = (flat * scale).half().abs()
    lost, overflow = half == 0, half.isinf()
    subnormal, normal = ~lost & (half < 2.0**-14), half >= 2.0**-14
    return {
        "lost": lost.sum().item() / n,
        "subnormal": subnormal.sum().item() / n,
        "normal": normal.sum().item() / n,
        "overflow": overflow.sum().item() / n,
    }
