"""."""


def choose_init_scale(grads):
    largest = max(g.abs().max() for g in grads)
    if largest == 0:
        return 65536.0
    scale = 2.0**24
    while scale > 1 and not (2 * scale * largest).half().isfinite():
        scale /= 2
    return scale
