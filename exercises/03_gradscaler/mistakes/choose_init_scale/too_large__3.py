"""."""


def choose_init_scale(grads):
    largest = max(g.abs().max().item() for g in grads)
    if largest == 0:
        return 65536.0
    scale = 1.0
    while scale * 2 <= 2**24 and largest * scale * 2 <= 65520:
        scale *= 2
    return scale
