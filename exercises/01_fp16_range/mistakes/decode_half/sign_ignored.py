"""A pattern with its sign bit set comes out with the wrong sign. The first of the sixteen bits is the sign of
every value: of normal and subnormal numbers, of infinity, and of zero, where `-0.0` and `0.0` are equal and not
the same."""

import math


def decode_half(bits):
    exponent, mantissa = bits >> 10 & 0x1F, bits & 0x3FF
    if exponent == 0:
        return mantissa * 2.0**-24
    if exponent == 31:
        return math.nan if mantissa else math.inf
    return 2.0 ** (exponent - 15) * (1 + mantissa / 1024)
