"""The sixteen bits are cut in the wrong places: that is how BF16 divides them. FP16 is 1 + 5 + 10; write a failing
pattern in binary and mark its three fields."""

import math


def decode_half(bits):
    sign = -1.0 if bits >> 15 else 1.0
    exponent, mantissa = bits >> 7 & 0xFF, bits & 0x7F
    if exponent == 0:
        return sign * mantissa * 2.0**-133
    if exponent == 255:
        return math.nan if mantissa else sign * math.inf
    return sign * 2.0 ** (exponent - 127) * (1 + mantissa / 128)
