"""."""


def choose_init_scale(grads):
    largest = max(g.abs().max() for g in grads)
    if largest == 0:
        return 1.0
    exponent = 24
    while exponent > 0 and (largest * 2.0**exponent).half().isinf():
        exponent -= 1
    return 2.0**exponent
