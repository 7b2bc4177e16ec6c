"""."""

import math


def choose_init_scale(grads):
    largest = max(g.abs().max().item() for g in grads)
    if largest == 0:
        return 65536.0
    return 2.0 ** math.floor(math.log2(65519.99 / largest))
