"""."""

import numpy as np


def decode_half(bits):
    sign = -1.0 if bits >> 15 else 1.0
    exponent, mantissa = bits >> 10 & 0x1F, bits & 0x3FF
    if exponent == 0:
        return sign * mantissa * 2.0**-24
    if exponent == 31:
        return np.nan if mantissa else sign * np.inf
    return sign * 2.0 ** (exponent - 15) * (1 + mantissa / 1024)
