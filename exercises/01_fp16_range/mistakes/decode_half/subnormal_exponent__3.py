"""."""


def decode_half(bits):
    sign = -1.0 if bits & 0x8000 else 1.0
    exponent, mantissa = (bits >> 10) & 31, bits & 1023
    if exponent == 31:
        return sign * float("inf") if mantissa == 0 else float("nan")
    if exponent == 0 and mantissa == 0:
        return sign * 0.0
    return sign * 2.0 ** (exponent - 15) * (1.0 + mantissa / 1024.0)
