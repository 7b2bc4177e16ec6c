"""."""

import ctypes


class Both(ctypes.Union):
    _fields_ = [("pattern", ctypes.c_uint32), ("value", ctypes.c_float)]


def decode_half(bits):
    sign, exponent, mantissa = bits >> 15, bits >> 10 & 31, bits & 1023
    if exponent == 0:
        value = mantissa * 2.0**-24
        return -value if sign else value
    exponent = 255 if exponent == 31 else exponent - 15 + 127
    both = Both()
    both.pattern = sign << 31 | exponent << 23 | mantissa << 13
    return both.value
