"""A gradient in a tensor of shape () was left out: it has no dimensions, and one element all the same, which can be the
largest of all. Look at which tensors your code passes over."""


def choose_init_scale(grads):
    if all((g == 0).all() for g in grads):
        return 65536.0
    grads = [g for g in grads if g.dim() > 0]
    scale = 2.0**24
    while scale > 1 and not all((g * scale).half().isfinite().all() for g in grads):
        scale /= 2
    return scale
