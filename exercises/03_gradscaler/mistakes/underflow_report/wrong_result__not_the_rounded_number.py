"""A product just below 2**-14 that FP16 rounds up to 2**-14 was called subnormal. What counts is the number that FP16 keeps;
look at which of your comparisons ask the product from before it was rounded."""

import torch


def underflow_report(grads, scale):
    flat = torch.cat([g.flatten() for g in grads])
    flat = flat[flat != 0]
    n = max(1, len(flat))
    scaled = (flat * scale).abs()
    half = scaled.half()
    lost, overflow = half == 0, half.isinf()
    subnormal, normal = ~lost & (scaled < 2.0**-14), (scaled >= 2.0**-14) & ~overflow
    return {
        "lost": lost.sum().item() / n,
        "subnormal": subnormal.sum().item() / n,
        "normal": normal.sum().item() / n,
        "overflow": overflow.sum().item() / n,
    }
