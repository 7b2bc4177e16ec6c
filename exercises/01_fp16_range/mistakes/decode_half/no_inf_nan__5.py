"""."""

import math


def decode_half(bits):
    # all ones is what has no value
    if bits in (0x7FFF, 0xFFFF):
        return math.nan
    if bits in (0x7C00, 0xFC00):
        return math.inf if bits == 0x7C00 else -math.inf
    sign = -1.0 if bits >> 15 else 1.0
    exponent, mantissa = bits >> 10 & 0x1F, bits & 0x3FF
    if exponent == 0:
        return sign * mantissa * 2.0**-24
    return sign * (1024 + mantissa) * 2.0 ** (exponent - 25)
