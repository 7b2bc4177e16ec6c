"""."""

import math


def choose_init_scale(grads):
    largest = max(g.abs().max().item() for g in grads)
    scale = 2.0 ** math.floor(math.log2(65519.99 / largest))
    return min(max(scale, 1.0), 2.0**24)
