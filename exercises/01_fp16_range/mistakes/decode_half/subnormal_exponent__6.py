"""."""


def decode_half(bits):
    sign = -1.0 if bits >> 15 else 1.0
    exponent, mantissa = bits >> 10 & 0x1F, bits & 0x3FF
    if exponent == 0:
        return sign * mantissa * 2.0**-25
    return sign * (1024 + mantissa) * 2.0 ** (exponent - 25)
