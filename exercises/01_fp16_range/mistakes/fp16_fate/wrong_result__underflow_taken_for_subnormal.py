"""Numbers of which FP16 keeps nothing get the name of numbers that it keeps. The question is what is left once a
number is stored, and not whether it was zero before; ask a real cast what becomes of 1e-10."""

import math


def fp16_fate(x):
    names = []
    for value in x.tolist():
        size = abs(value)
        if math.isnan(value):
            names.append("nan")
        elif size >= 65520:
            names.append("inf")
        elif size == 0:
            names.append("zero")
        elif size < 2**-14:
            names.append("subnormal")
        else:
            names.append("normal")
    return names
