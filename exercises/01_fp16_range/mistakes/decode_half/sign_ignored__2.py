"""."""

import math


def decode_half(bits):
    sign = -1 if bits >> 15 else 1
    exponent, mantissa = bits >> 10 & 0x1F, bits & 0x3FF
    if exponent == 31:
        return math.nan if mantissa else math.inf
    if exponent == 0:
        return sign * (mantissa * 2.0**-24)
    return sign * 2.0 ** (exponent - 15) * (1 + mantissa / 1024)
