"""."""


def choose_init_scale(grads):
    if all((g == 0).all() for g in grads):
        return 65536.0
    return 2.0**15  # the largest power of two that is finite in FP16
