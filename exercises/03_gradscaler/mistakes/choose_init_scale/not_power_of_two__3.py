"""."""

import math


def choose_init_scale(grads):
    largest = max(g.abs().max().item() for g in grads)
    if largest == 0:
        return 65536.0
    return min(max(10.0 ** math.floor(math.log10(65504 / largest)), 1.0), 2.0**24)
