"""2**-14 itself gets the name of the numbers below it. It is the smallest of the normal numbers, exponent field 1
with mantissa 0; look at which side of the border your comparison puts the border itself."""

import math


def fp16_fate(x):
    names = []
    for value in x.half().tolist():
        size = abs(value)
        if math.isnan(value):
            names.append("nan")
        elif math.isinf(value):
            names.append("inf")
        elif size == 0:
            names.append("zero")
        elif size <= 2**-14:
            names.append("subnormal")
        else:
            names.append("normal")
    return names
