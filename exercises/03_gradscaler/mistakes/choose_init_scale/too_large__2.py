"""."""

import math


def choose_init_scale(grads):
    largest = max(g.abs().max().item() for g in grads)
    if largest == 0:
        return 65536.0
    scale = 2.0 ** round(math.log2(65504 / largest))
    return min(max(scale, 1.0), 2.0**24)
