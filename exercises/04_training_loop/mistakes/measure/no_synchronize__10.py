"""."""

import statistics


def measure(step, synchronize, clock, warmup=3, iterations=10):
    for _ in range(warmup):
        step()
    times = []
    for _ in range(iterations):
        synchronize()
        start = clock()
        synchronize()
        step()
        times.append(clock() - start)
    return statistics.median(times)
