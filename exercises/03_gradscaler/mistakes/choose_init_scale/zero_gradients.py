"""Gradients that are zero fit at any scale, or make your formula fail. Read in the docstring what to return when
all of them are zero, and try a tensor of zeros beside one that is not."""


def choose_init_scale(grads):
    largest = max(g.abs().max() for g in grads)
    for exponent in range(24, 0, -1):
        if (largest * 2.0**exponent).half().isfinite():
            return 2.0**exponent
    return 1.0
