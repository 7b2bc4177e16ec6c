"""."""

import torch


def choose_init_scale(grads):
    largest = max(g.abs().max() for g in grads)
    if largest == 0:
        return 65536.0
    best = 1.0
    for exponent in range(24):
        if torch.isfinite((largest * 2**exponent).half()):
            best = 2.0**exponent
    return best
