"""The scale follows a norm, sum or mean of the gradients, which depends on how many elements there are. Overflow
happens element by element: look at what decides it."""


def choose_init_scale(grads):
    size = max(g.mean().abs() for g in grads)
    if size == 0:
        return 65536.0
    for exponent in range(24, 0, -1):
        if (size * 2.0**exponent).half().isfinite():
            return 2.0**exponent
    return 1.0
