"""The scale leaves FP32's range at the upper end, or stops at a number that no growth leads to. A growth that goes beyond
FP32's largest number does not happen; look at what the scale is in that case, and at what it was before."""


def simulate_scale(found_inf, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
    scale, good, history = init_scale, 0, []
    for overflow in found_inf:
        if overflow:
            scale, good = scale * backoff_factor, 0
        else:
            good += 1
            if good == growth_interval:
                scale, good = scale * growth_factor, 0
        history.append(scale)
    return history
