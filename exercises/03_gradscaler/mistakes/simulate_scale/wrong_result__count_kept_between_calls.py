"""The count of good steps goes on from one call of your function to the next, so that only the first call is right. Each
call is about a run of its own; look at what your function finds that it has not made."""

import torch

good = 0


def simulate_scale(found_inf, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
    global good
    scale, history = init_scale, []
    for overflow in found_inf:
        if overflow:
            scale *= backoff_factor
            good = 0
        else:
            good += 1
            if good == growth_interval:
                if scale * growth_factor <= torch.finfo(torch.float32).max:
                    scale *= growth_factor
                good = 0
        history.append(scale)
    return history
