"""The exponent of the largest magnitude, read off with math.frexp."""

import math


def choose_init_scale(grads):
    largest = max(float(g.abs().max()) for g in grads)
    if largest == 0:
        return 65536.0
    mantissa, exponent = math.frexp(largest)  # largest = mantissa * 2**exponent, 0.5 <= mantissa < 1
    # 65520 = 0.999755859375 * 2**16 is the first number that rounds to inf
    power = 16 - exponent if mantissa < 65520 / 65536 else 15 - exponent
    return 2.0 ** min(max(power, 0), 24)
