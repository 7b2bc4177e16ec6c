"""Your scale is smaller than it should be: a larger power of two is still finite everywhere, or you went below 1.
Check which products FP16 rounds down to a finite number, and where your search starts and ends."""

import math


def choose_init_scale(grads):
    largest = max(g.abs().max().item() for g in grads)
    if largest == 0:
        return 65536.0
    scale = 2.0 ** math.floor(math.log2(65504 / largest))
    return min(max(scale, 1.0), 2.0**24)
