"""."""


def choose_init_scale(grads):
    largest = max(g.abs().max().item() for g in grads)
    if largest == 0:
        return 65536.0
    return float(max(1, 65504 // largest))
