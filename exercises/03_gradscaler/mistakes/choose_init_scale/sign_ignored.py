"""A gradient that is negative and large was not noticed, so it overflows to -inf at your scale. Print the largest
number that your code finds in a failing input, and the input."""


def choose_init_scale(grads):
    largest = max(g.max() for g in grads)
    if largest == 0:
        return 65536.0
    for exponent in range(24, 0, -1):
        if (largest * 2.0**exponent).half().isfinite():
            return 2.0**exponent
    return 1.0
