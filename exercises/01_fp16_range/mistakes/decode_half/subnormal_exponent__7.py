"""."""

import math


def decode_half(bits):
    sign = -1.0 if bits >> 15 else 1.0
    exponent, mantissa = bits >> 10 & 0x1F, bits & 0x3FF
    if exponent == 0:
        return sign * 2.0**-14 * mantissa
    if exponent == 31:
        return math.nan if mantissa else sign * math.inf
    return sign * 2.0 ** (exponent - 15) * (1 + mantissa / 1024)
