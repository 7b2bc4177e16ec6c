"""."""


def choose_init_scale(grads):
    smallest = min(float(g.abs().min()) for g in grads)
    if smallest == 0:
        return 65536.0
    scale = 2.0**24
    while scale > 1 and smallest * scale >= 65520:
        scale /= 2
    return scale
