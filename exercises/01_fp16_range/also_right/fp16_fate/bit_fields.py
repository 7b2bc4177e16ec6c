"""From the exponent and mantissa fields of the FP16 pattern."""

import torch


def fp16_fate(x: torch.Tensor) -> list[str]:
    patterns = x.to(torch.float16).view(torch.int16).tolist()
    fates = []
    for pattern in patterns:
        exponent, mantissa = pattern >> 10 & 0x1F, pattern & 0x3FF
        if exponent == 31:
            fates.append("nan" if mantissa else "inf")
        elif exponent == 0:
            fates.append("subnormal" if mantissa else "zero")
        else:
            fates.append("normal")
    return fates
