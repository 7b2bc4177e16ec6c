"""."""


def choose_init_scale(grads):
    for exponent in range(24, 0, -1):
        scaled = [(g * 2.0**exponent).half() for g in grads]
        if all((s < float("inf")).all() for s in scaled):
            return 2.0**exponent
    return 1.0
