"""Binary search over the exponent, every element of every tensor tried."""

import torch


def choose_init_scale(grads: list[torch.Tensor]) -> float:
    def fits(exponent):
        return all(bool(torch.isfinite((g * 2.0**exponent).to(torch.float16)).all()) for g in grads)

    if not any(bool(g.count_nonzero()) for g in grads):
        return float(2**16)
    low, high = 0, 24
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return float(2**low)
