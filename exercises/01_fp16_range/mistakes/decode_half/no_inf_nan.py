"""Exponent field 31 is read wrongly. It is kept for values that are not ordinary numbers, and the mantissa says
which of them a pattern is; the sign counts there, too."""


def decode_half(bits):
    sign = -1.0 if bits >> 15 else 1.0
    exponent, mantissa = bits >> 10 & 0x1F, bits & 0x3FF
    if exponent == 0:
        return sign * 2.0**-14 * (mantissa / 1024)
    return sign * 2.0 ** (exponent - 15) * (1 + mantissa / 1024)
