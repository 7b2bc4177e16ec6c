"""One reading more than iterations, and their differences; the median by hand."""

from itertools import pairwise


def measure(step, synchronize, clock, warmup=3, iterations=10) -> float:
    for _ in range(warmup):
        step()
    synchronize()
    readings = [clock()]
    while len(readings) <= iterations:
        step()
        synchronize()
        readings.append(clock())
    times = sorted(b - a for a, b in pairwise(readings))
    half = len(times) // 2
    return times[half] if len(times) % 2 else (times[half - 1] + times[half]) / 2
