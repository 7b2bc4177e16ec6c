"""."""


def decode_half(bits):
    text = f"{bits:016b}"
    exponent, mantissa = int(text[1:6], 2), int(text[6:], 2)
    if exponent == 0:
        value = 0.0
    elif exponent == 31:
        value = float("inf") if mantissa == 0 else float("nan")
    else:
        value = (1024 + mantissa) * 2.0 ** (exponent - 25)
    return -value if text[0] == "1" else value
