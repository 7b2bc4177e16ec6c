"""."""


def simulate_scale(found_inf, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
    scale, history = init_scale, []
    for step in range(1, len(found_inf) + 1):
        if step % growth_interval == 0 and scale * growth_factor < 2.0**128:
            scale *= growth_factor
        history.append(scale)
    return history
