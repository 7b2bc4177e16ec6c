"""."""

import statistics


def measure(step, synchronize, clock, warmup=3, iterations=10):
    for _ in range(warmup):
        step()
    times, last = [], clock()
    for _ in range(iterations):
        step()
        synchronize()
        now = clock()
        times.append(now - last)
        last = now
    return statistics.median(times)
