"""."""

import math


def decode_half(bits):
    sign = -1.0 if bits >> 15 else 1.0
    exponent, mantissa = bits >> 10 & 0x1F, bits & 0x3FF
    leading = 1 if exponent else 0
    if exponent == 31:
        return math.nan if mantissa else sign * math.inf
    return sign * math.ldexp(leading + mantissa / 1024, exponent - 15)
