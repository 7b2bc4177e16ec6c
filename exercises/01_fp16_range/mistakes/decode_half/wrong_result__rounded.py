"""The values are near and not exact, though they may be printed alike: something rounds to a number of digits. Small
numbers have many digits after the point, and a Python float holds all of them; look for what is done to the number at
the end."""

import math


def decode_half(bits):
    sign = -1.0 if bits & 0x8000 else 1.0
    exponent, mantissa = bits >> 10 & 31, bits & 1023
    if exponent == 31:
        return math.nan if mantissa else sign * math.inf
    value = mantissa * 2.0**-24 if exponent == 0 else (1 + mantissa / 1024) * 2.0 ** (exponent - 15)
    return sign * round(value, 8)
