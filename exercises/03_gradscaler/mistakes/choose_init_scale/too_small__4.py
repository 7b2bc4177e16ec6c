"""."""


def choose_init_scale(grads):
    largest = max(g.abs().max() for g in grads)
    if largest == 0:
        return 65536.0
    scale = 2.0**24
    while (scale * largest).half().isinf():
        scale = scale / 2
    return scale
