"""."""

import statistics


def measure(step, synchronize, clock, warmup=3, iterations=10):
    for _ in range(warmup):
        step()
    times = []
    for _ in range(iterations + 1):
        synchronize()
        start = clock()
        step()
        synchronize()
        times.append(clock() - start)
    return statistics.median(times)
