"""."""


def choose_init_scale(grads):
    scales = []
    for g in grads:
        largest = g.abs().max()
        if largest == 0:
            return 65536.0
        fitting = [2.0**k for k in range(25) if (largest * 2.0**k).half().isfinite()]
        scales.append(max(fitting, default=1.0))
    return min(scales)
