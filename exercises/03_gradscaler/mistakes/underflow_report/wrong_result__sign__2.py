"""."""

import torch


def underflow_report(grads, scale):
    flat = torch.cat([g.flatten() for g in grads])
    flat = flat[flat != 0]
    n = max(len(flat), 1)
    product = flat * scale
    half = product.half()
    overflow = half.isinf()
    lost = half == 0
    subnormal = (half > 0) & (half < 2.0**-14)
    normal = ~(overflow | lost | subnormal)
    fates = {"lost": lost, "subnormal": subnormal, "normal": normal, "overflow": overflow}
    return {name: int(fate.sum()) / n for name, fate in fates.items()}
