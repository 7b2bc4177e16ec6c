"""The scale follows the smallest gradient, and at it the larger ones overflow FP16. One element that overflows is enough
to skip a step; look at which of them decides in your code."""


def choose_init_scale(grads):
    if all((g == 0).all() for g in grads):
        return 65536.0
    scale = 2.0**24
    while scale > 1 and not all((g * scale).half().isfinite().any() for g in grads):
        scale /= 2
    return scale
