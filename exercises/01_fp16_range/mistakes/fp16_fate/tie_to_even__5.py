"""."""

import math


def fp16_fate(x):
    # rounds half up, as at school
    fates = []
    for v in x.tolist():
        if math.isnan(v):
            fates.append("nan")
        elif math.isinf(v) or abs(v) >= 65520:
            fates.append("inf")
        else:
            steps = math.floor(abs(v) / 2**-24 + 0.5)
            fates.append("zero" if steps == 0 else "subnormal" if steps < 1024 else "normal")
    return fates
