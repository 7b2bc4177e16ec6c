"""."""


def decode_half(bits):
    sign = (-1.0) ** (bits >> 15)
    exponent = (bits >> 10) & 31
    fraction = (bits & 1023) / 1024
    if exponent == 31:
        return float("nan") if fraction else sign * float("inf")
    value = 2.0 ** (exponent - 15) * (1 + fraction)
    if value < 2**-14:
        value = 0.0
    return sign * value
