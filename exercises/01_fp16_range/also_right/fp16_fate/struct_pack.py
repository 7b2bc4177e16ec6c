"""struct's half format, which raises where a finite number overflows."""

import math
import struct


def fp16_fate(x):
    fates = []
    for value in x.tolist():
        try:
            (half,) = struct.unpack("<e", struct.pack("<e", value))
        except OverflowError:
            half = math.inf
        if math.isnan(half):
            fates.append("nan")
        elif math.isinf(half):
            fates.append("inf")
        elif half == 0:
            fates.append("zero")
        else:
            fates.append("subnormal" if abs(half) < 2**-14 else "normal")
    return fates
