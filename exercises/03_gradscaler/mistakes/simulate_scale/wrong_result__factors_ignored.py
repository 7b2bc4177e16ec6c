"""The scale doubles and halves whatever the factors are that were given. Look at which of the five arguments your code does
not use."""


def simulate_scale(found_inf, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
    scale, good, history = init_scale, 0, []
    for overflow in found_inf:
        if overflow:
            scale, good = scale / 2, 0
        else:
            good += 1
            if good == growth_interval:
                scale, good = (scale * 2 if scale * 2 < 2.0**128 else scale), 0
        history.append(scale)
    return history
