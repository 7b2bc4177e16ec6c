"""."""

import statistics


def measure(step, synchronize, clock, warmup=3, iterations=10):
    for _ in range(warmup):
        step()
    synchronize()
    times = []
    for _ in range(iterations):
        start = clock()
        step()
        end = clock()
        synchronize()
        times.append(end - start)
    return statistics.median(times)
