"""."""

import torch


def underflow_report(grads, scale):
    flat = torch.cat([g.flatten() for g in grads])
    half = (flat * scale).half().abs()
    nonzero = (flat != 0).sum().item()
    if nonzero == 0:
        return {"lost": 0.0, "subnormal": 0.0, "normal": 0.0, "overflow": 0.0}
    return {
        "lost": (half == 0).sum().item() / nonzero,
        "subnormal": ((half > 0) & (half < 2**-14)).sum().item() / nonzero,
        "normal": ((half >= 2**-14) & half.isfinite()).sum().item() / nonzero,
        "overflow": half.isinf().sum().item() / nonzero,
    }
