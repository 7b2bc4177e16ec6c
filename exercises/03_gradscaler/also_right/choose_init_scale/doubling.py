"""Doubling from 1 while the next power still fits; the norm of order inf; an int is returned."""

import torch


def choose_init_scale(grads):
    largest = torch.linalg.vector_norm(torch.stack([g.flatten().norm(p=torch.inf) for g in grads]), ord=torch.inf)
    if largest == 0:
        return 2**16
    scale = 1
    while scale < 2**24 and not torch.isinf((largest * (2 * scale)).half()):
        scale *= 2
    return scale
