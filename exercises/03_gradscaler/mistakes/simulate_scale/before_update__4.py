"""."""


def simulate_scale(found_inf, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
    scales, good = [float(init_scale)], 0
    for overflow in found_inf:
        good = 0 if overflow else good + 1
        factor = backoff_factor if overflow else 1.0
        if good == growth_interval:
            factor, good = growth_factor, 0
        scales.append(scales[-1] * factor)
    return scales
