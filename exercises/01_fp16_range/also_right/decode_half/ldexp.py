"""The whole significand as an integer, shifted by math.ldexp; copysign at the end."""

import math


def decode_half(bits: int) -> float:
    exponent, mantissa = divmod(bits & 0x7FFF, 1024)
    if exponent == 31:
        value = math.nan if mantissa else math.inf
    elif exponent:
        value = math.ldexp(1024 + mantissa, exponent - 25)
    else:
        value = math.ldexp(mantissa, -24)
    return math.copysign(value, -1 if bits & 0x8000 else 1)
