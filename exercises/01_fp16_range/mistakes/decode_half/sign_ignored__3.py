"""."""


def decode_half(bits):
    # the product with an int 0 loses the sign of zero
    sign = -1 if bits & 0x8000 else 1
    exponent, mantissa = (bits & 0x7C00) >> 10, bits & 0x03FF
    if exponent == 31:
        return float("nan") if mantissa else sign * float("inf")
    if exponent == 0:
        return sign * mantissa * 2.0**-24
    return sign * (1024 + mantissa) * 2.0 ** (exponent - 25)
