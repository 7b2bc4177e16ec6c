"""."""

import math


def fp16_fate(x):
    names = []
    for value in x.half().tolist():
        size = abs(value)
        if math.isinf(value):
            names.append("inf")
        elif size == 0:
            names.append("zero")
        elif size < 2**-14:
            names.append("subnormal")
        else:
            names.append("normal")
    return names
