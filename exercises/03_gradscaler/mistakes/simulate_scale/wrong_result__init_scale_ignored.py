"""The scale begins at another number than the one that was given. Look at which of the five arguments your code does not
use."""

import torch


def simulate_scale(found_inf, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
    scale, good, history = 65536.0, 0, []
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
