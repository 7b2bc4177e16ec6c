"""."""


def choose_init_scale(grads):
    # what every GradScaler starts from, unless there is nothing to lose
    if any(not g.half().isfinite().all() for g in grads):
        return 1.0
    return 2.0**16
