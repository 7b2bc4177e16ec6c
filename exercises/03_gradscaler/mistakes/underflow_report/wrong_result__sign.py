"""Negative elements are put into the wrong ranges: every negative number is smaller than any of the borders. Look at whether
your comparisons are about magnitudes."""

import torch


def underflow_report(grads, scale):
    flat = torch.cat([g.flatten() for g in grads])
    flat = flat[flat != 0]
    n = max(1, len(flat))
    half = (flat * scale).half()
    lost, overflow = half == 0, half == float("inf")
    subnormal = (half != 0) & (half < 2.0**-14)
    normal = ~(lost | subnormal | overflow)
    return {
        "lost": lost.sum().item() / n,
        "subnormal": subnormal.sum().item() / n,
        "normal": normal.sum().item() / n,
        "overflow": overflow.sum().item() / n,
    }
