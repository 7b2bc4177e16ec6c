"""."""


def choose_init_scale(grads):
    if sum(g.sum() for g in grads) == 0:
        return 65536.0
    scale = 2.0**24
    while scale > 1 and not all((g * scale).half().isfinite().all() for g in grads):
        scale /= 2
    return scale
