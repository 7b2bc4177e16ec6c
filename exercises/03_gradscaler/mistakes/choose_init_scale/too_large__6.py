"""."""

import torch


def choose_init_scale(grads):
    if all(not g.any() for g in grads):
        return 65536.0
    for exponent in range(24, 0, -1):
        if all(torch.isfinite(g * 2.0**exponent).all() for g in grads):
            return 2.0**exponent
    return 1.0
