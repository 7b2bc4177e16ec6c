"""."""

import math


def decode_half(bits):
    sign = -1.0 if bits & 0x8000 else 1.0
    exponent, mantissa = bits >> 10 & 31, bits & 1023
    if exponent == 31:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return sign * mantissa * 2.0**-23
    return sign * (1 + mantissa / 1024) * 2.0 ** (exponent - 14)
