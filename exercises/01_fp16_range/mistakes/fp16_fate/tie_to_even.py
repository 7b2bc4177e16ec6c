"""Your border lies beside the place where rounding changes its mind. A number is stored as the nearer of its two
neighbours in FP16, and exactly half-way as the one whose last bit is 0: find out between which two numbers the
failing input lies."""

import math


def fp16_fate(x):
    fates = []
    for v in x.tolist():
        a = abs(v)
        if math.isnan(v):
            fates.append("nan")
        elif a >= 65520:
            fates.append("inf")
        elif a >= 2**-14:
            fates.append("normal")
        elif a >= 2**-25:
            fates.append("subnormal")
        else:
            fates.append("zero")
    return fates
