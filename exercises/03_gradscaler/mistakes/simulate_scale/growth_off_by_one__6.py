"""."""


def simulate_scale(found_inf, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
    scale, good, history = init_scale, 0, []
    for overflow in found_inf:
        if overflow:
            scale *= backoff_factor
            good = 0
        elif good == growth_interval - 1:
            scale = min(scale * growth_factor, 2.0**127)
            good = 1
        else:
            good += 1
        history.append(scale)
    return history
