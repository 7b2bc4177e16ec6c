"""What you return is not a power of two. The quotient that you compute is a bound; find the power of two that
belongs to it."""


def choose_init_scale(grads):
    largest = max(g.abs().max() for g in grads)
    if largest == 0:
        return 65536.0
    scale = 65504.0 / largest.item()
    return min(max(scale, 1.0), 2.0**24)
