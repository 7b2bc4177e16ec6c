"""itertools.accumulate over a state of scale and steps that are still missing."""

from itertools import accumulate


def simulate_scale(
    found_inf: list[bool],
    init_scale: float = 65536.0,
    growth_factor: float = 2.0,
    backoff_factor: float = 0.5,
    growth_interval: int = 2000,
) -> list[float]:
    def update(state, overflow):
        scale, missing = state
        if overflow:
            return scale * backoff_factor, growth_interval
        if missing > 1:
            return scale, missing - 1
        grown = scale * growth_factor
        return (grown if grown < 2.0**128 else scale), growth_interval

    states = accumulate(found_inf, update, initial=(init_scale, growth_interval))
    return [scale for scale, _ in states][1:]
