"""Every normal number is off by the same power of two, so the exponent field is counted from the wrong place.
Which pattern is 1.0, and what is its exponent field?"""

import math


def decode_half(bits):
    sign = -1.0 if bits >> 15 else 1.0
    exponent, mantissa = bits >> 10 & 0x1F, bits & 0x3FF
    if exponent == 31:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return sign * mantissa * 2.0**-25
    return sign * 2.0 ** (exponent - 16) * (1 + mantissa / 1024)
