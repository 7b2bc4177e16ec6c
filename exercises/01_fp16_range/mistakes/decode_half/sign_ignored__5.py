"""."""


def decode_half(bits):
    sign = bits >> 15
    exponent, mantissa = (bits & 0x7C00) >> 10, bits & 0x03FF
    if exponent == 31:
        return float("nan") if mantissa else float("inf")
    if exponent == 0:
        return mantissa * 2.0**-24
    value = (1024 + mantissa) * 2.0 ** (exponent - 25)
    return -value if sign else value
