"""The scale follows a norm, sum or mean of the gradients, which depends on how many elements there are. Overflow
happens element by element: look at what decides it."""

import torch


def choose_init_scale(grads):
    mean = torch.cat([g.flatten() for g in grads]).abs().mean()
    if mean == 0:
        return 65536.0
    for exponent in range(24, 0, -1):
        if (mean * 2.0**exponent).half().isfinite():
            return 2.0**exponent
    return 1.0
