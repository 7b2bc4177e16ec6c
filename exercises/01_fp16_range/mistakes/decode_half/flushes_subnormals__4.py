"""."""


def decode_half(bits):
    sign = -1.0 if bits & 0x8000 else 1.0
    exponent, mantissa = (bits & 0x7C00) >> 10, bits & 0x03FF
    if exponent == 0:
        return 0.0
    return sign * 2.0 ** (exponent - 15) * (1 + mantissa / 1024)
