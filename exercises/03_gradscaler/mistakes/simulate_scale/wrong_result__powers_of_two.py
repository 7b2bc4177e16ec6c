"""The scale was rounded to a power of two. That is what it is with the usual factors; GradScaler multiplies by the
factors that it is given, and rounds nothing. Look at what your code does to the scale besides multiplying."""

import math

import torch


def simulate_scale(found_inf, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
    scale, good, history = init_scale, 0, []
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
        scale = 2.0 ** round(math.log2(scale))
        history.append(scale)
    return history
