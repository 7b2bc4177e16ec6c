"""Elements that FP16 still keeps are counted as lost. Below 2**-14 numbers only have fewer bits: look at where
`lost` begins, and at what the cast itself makes of such a number."""

import torch


def underflow_report(grads, scale):
    flat = torch.cat([g.flatten() for g in grads])
    flat = flat[flat != 0]
    n = max(1, len(flat))
    half = (flat * scale).half().abs()
    lost = (half < torch.finfo(torch.float16).tiny).sum().item()
    overflow = half.isinf().sum().item()
    return {"lost": lost / n, "subnormal": 0.0, "normal": (len(flat) - lost - overflow) / n, "overflow": overflow / n}
