"""."""


def choose_init_scale(grads):
    largest = max(g.abs().max() for g in grads)
    if largest == 0:
        return 65536.0
    scale = 65536.0
    while scale > 1 and (scale * largest).half().isinf():
        scale /= 2
    return scale
