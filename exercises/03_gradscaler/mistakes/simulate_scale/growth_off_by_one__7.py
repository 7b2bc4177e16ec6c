"""."""

import torch


def simulate_scale(found_inf, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
    scale, good, history = init_scale, 0, []
    for overflow in found_inf:
        if overflow:
            scale *= backoff_factor
            good = 0
        else:
            good += 1
            if good == growth_interval - 1:
                if scale * growth_factor <= torch.finfo(torch.float32).max:
                    scale *= growth_factor
                good = 0
        history.append(scale)
    return history
