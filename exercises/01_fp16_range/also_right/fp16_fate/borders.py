"""No cast at all: the four borders of round half to even."""

import math


def fp16_fate(x):
    def fate(value):
        size = abs(value)
        if math.isnan(size):
            return "nan"
        if size >= 65520:
            return "inf"
        if size >= 2**-14 - 2**-25:
            return "normal"
        return "subnormal" if size > 2**-25 else "zero"

    return [fate(value) for value in x.tolist()]
