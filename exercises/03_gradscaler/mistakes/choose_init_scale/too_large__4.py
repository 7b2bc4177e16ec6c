"""."""


def choose_init_scale(grads):
    largest = max(g.abs().max() for g in grads)
    if largest == 0:
        return 65536.0
    scale = 1.0
    while (largest * scale * 2).half().isfinite():
        scale *= 2
    return scale
