"""."""


def decode_half(bits):
    sign = (-1) ** (bits >> 15)
    exponent = (bits >> 10) & 0b11111
    mantissa = bits & 0b1111111111
    return sign * 2.0 ** (exponent - 15) * (1 + mantissa / 2**10)
