"""Exact fractions, converted at the end."""

from fractions import Fraction


def decode_half(bits: int) -> float:
    negative, exponent, mantissa = bool(bits & 0x8000), bits // 1024 % 32, bits % 1024
    if exponent == 31:
        return float("nan") if mantissa else float("-inf" if negative else "inf")
    value = float(Fraction(mantissa + (1024 if exponent else 0), 1024) * Fraction(2) ** (max(exponent, 1) - 15))
    return -value if negative else value
