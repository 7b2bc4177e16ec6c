"""There are fewer names than numbers: each kind is named once. A name is asked for each element, in order, so that
the two lists can be laid side by side."""

import math


def fp16_fate(x):
    names = []
    for value in x.half().tolist():
        size = abs(value)
        if math.isnan(value):
            name = "nan"
        elif math.isinf(value):
            name = "inf"
        elif size == 0:
            name = "zero"
        else:
            name = "subnormal" if size < 2**-14 else "normal"
        if name not in names:
            names.append(name)
    return names
