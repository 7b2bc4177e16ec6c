"""The pattern as text, and the mantissa summed up bit by bit."""


def decode_half(bits: int) -> float:
    text = format(bits, "016b")
    sign, field, mantissa = text[0], int(text[1:6], 2), text[6:]
    fraction = sum(2.0**-place for place, bit in enumerate(mantissa, 1) if bit == "1")
    if field == 0b11111:
        value = float("nan" if "1" in mantissa else "inf")
    elif field == 0:
        value = fraction * 2**-14
    else:
        value = (1 + fraction) * 2 ** (field - 15)
    return -value if sign == "1" else value
