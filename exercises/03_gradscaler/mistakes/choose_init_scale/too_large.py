"""At the scale that you return something overflows FP16, or it is beyond 2**24. Multiply the largest gradient of a
failing input by your scale, convert the product to FP16, and look at it."""

import math


def choose_init_scale(grads):
    largest = max(g.abs().max().item() for g in grads)
    if largest == 0:
        return 65536.0
    scale = 2.0 ** math.ceil(math.log2(65504 / largest))
    return min(max(scale, 1.0), 2.0**24)
