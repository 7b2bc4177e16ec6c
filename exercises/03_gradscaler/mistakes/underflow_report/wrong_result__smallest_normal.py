"""The smallest normal number of FP16, 2**-14, was counted as a subnormal. Look at which side of the border your two
comparisons put the border itself."""

import torch


def underflow_report(grads, scale):
    flat = torch.cat([g.flatten() for g in grads])
    flat = flat[flat != 0]
    n = max(1, len(flat))
    half = (flat * scale).half().abs()
    lost, overflow = half == 0, half.isinf()
    subnormal, normal = ~lost & (half <= 2.0**-14), (half > 2.0**-14) & ~overflow
    return {
        "lost": lost.sum().item() / n,
        "subnormal": subnormal.sum().item() / n,
        "normal": normal.sum().item() / n,
        "overflow": overflow.sum().item() / n,
    }
