"""A hexadecimal float as Python writes it."""


def decode_half(bits):
    sign, exponent, mantissa = "-" if bits >> 15 else "", bits >> 10 & 31, bits & 1023
    if exponent == 31:
        return float(sign + ("nan" if mantissa else "inf"))
    return float.fromhex(f"{sign}0x{min(exponent, 1)}.{mantissa << 2:03x}p{max(exponent, 1) - 15}")
