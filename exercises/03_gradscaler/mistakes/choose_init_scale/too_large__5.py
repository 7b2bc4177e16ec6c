"""."""


def choose_init_scale(grads):
    largest = max(g.abs().max() for g in grads)
    if largest == 0:
        return 65536.0
    scale = 1.0
    while scale < 2.0**24 and (largest * scale).half().isfinite():
        scale *= 2
    return scale
