"""With exponent field 0 the rules change, and in two places: the leading one is gone, and the exponent is not the
one that the formula for normal numbers would give. The largest subnormal must lie just below the smallest
normal number."""

import math


def decode_half(bits):
    sign = -1.0 if bits >> 15 else 1.0
    exponent, mantissa = bits >> 10 & 0x1F, bits & 0x3FF
    if exponent == 0:
        return sign * 2.0**-15 * (mantissa / 1024)
    if exponent == 31:
        return math.nan if mantissa else sign * math.inf
    return sign * 2.0 ** (exponent - 15) * (1 + mantissa / 1024)
