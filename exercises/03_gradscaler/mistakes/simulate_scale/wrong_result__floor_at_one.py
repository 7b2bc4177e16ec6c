"""The scale stops falling at 1. GradScaler has no floor: gradients that overflow at 1 need a scale below it. Look at what
your code does to the scale in an overflow besides multiplying."""


def simulate_scale(found_inf, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
    scale, good, history = init_scale, 0, []
    for overflow in found_inf:
        if overflow:
            scale, good = max(1.0, scale * backoff_factor), 0
        else:
            good += 1
            if good == growth_interval:
                scale, good = (scale * growth_factor if scale * growth_factor < 2.0**128 else scale), 0
        history.append(scale)
    return history
