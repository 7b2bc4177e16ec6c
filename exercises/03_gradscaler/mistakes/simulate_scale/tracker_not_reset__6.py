"""."""


def simulate_scale(found_inf, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
    scale = init_scale
    history = []
    for step, overflow in enumerate(found_inf):
        if overflow:
            scale *= backoff_factor
        elif step > 0 and step % growth_interval == 0:
            scale *= growth_factor
        history.append(scale)
    return history
