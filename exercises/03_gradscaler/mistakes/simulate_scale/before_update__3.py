"""."""


def simulate_scale(found_inf, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
    scale, good, scales = init_scale, 0, []
    for overflow in found_inf:
        scales.append(scale)
        if overflow:
            scale, good = scale * backoff_factor, 0
        elif good + 1 == growth_interval:
            scale, good = scale * growth_factor, 0
        else:
            good += 1
    return scales
