"""Numbers that FP16 keeps are called zero. Below 6.1e-5, 2**-14, it has no normal numbers, but it still has a
thousand subnormal ones: ask a real cast what becomes of 1e-5."""

import math


def fp16_fate(x):
    fates = []
    for value in x.tolist():
        if math.isnan(value):
            fates.append("nan")
        elif abs(value) >= 65520:
            fates.append("inf")
        elif abs(value) < 6.1e-5:
            fates.append("zero")
        else:
            fates.append("normal")
    return fates
