"""Patterns with exponent field 0 come out as zero, although only two of the 2048 are. The others are the subnormal
numbers: look at what their mantissa still says."""

import math


def decode_half(bits):
    sign = -1.0 if bits >> 15 else 1.0
    exponent, mantissa = bits >> 10 & 0x1F, bits & 0x3FF
    if exponent == 0:
        return sign * 0.0
    if exponent == 31:
        return math.nan if mantissa else sign * math.inf
    return sign * 2.0 ** (exponent - 15) * (1 + mantissa / 1024)
