"""A generator of scales; the count is the distance to the last overflow or growth."""


def simulate_scale(found_inf, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
    largest = 3.4028234663852886e38

    def scales():
        scale, restart = float(init_scale), 0
        for step, bad in enumerate(found_inf, start=1):
            if bad:
                scale, restart = scale * backoff_factor, step
            elif step - restart == growth_interval:
                restart = step
                if scale * growth_factor <= largest:
                    scale *= growth_factor
            yield scale

    return list(scales())
