"""Gradients that are not zero were taken for zero because their sum is: a positive and a negative one cancel. Look at
how you find out whether anything in a tensor differs from zero."""


def choose_init_scale(grads):
    if all(g.sum() == 0 for g in grads):
        return 65536.0
    scale = 2.0**24
    while scale > 1 and not all((g * scale).half().isfinite().all() for g in grads):
        scale /= 2
    return scale
