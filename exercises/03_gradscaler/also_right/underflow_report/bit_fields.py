"""The fate read from the exponent and mantissa bits of the FP16 pattern."""

import torch


def underflow_report(grads: list[torch.Tensor], scale: float) -> dict[str, float]:
    flat = torch.cat([g.ravel() for g in grads])
    bits = (flat[flat.nonzero(as_tuple=True)] * scale).to(torch.float16).view(torch.int16)
    exponent, mantissa = (bits >> 10) & 0x1F, bits & 0x3FF
    fate = torch.ones_like(exponent) * 2
    fate[exponent == 31] = 3
    fate[(exponent == 0) & (mantissa != 0)] = 1
    fate[(exponent == 0) & (mantissa == 0)] = 0
    counts = torch.bincount(fate.long(), minlength=4).tolist()
    shares = [count / max(sum(counts), 1) for count in counts]
    return dict(zip(("lost", "subnormal", "normal", "overflow"), shares, strict=True))
