"""The first reading of the clock does not wait: you synchronize after it, so that what had been queued before is in the
time. Look at the order of the two calls."""

import statistics


def measure(step, synchronize, clock, warmup=3, iterations=10):
    for _ in range(warmup):
        step()
    times = []
    for _ in range(iterations):
        start = clock()
        synchronize()
        step()
        synchronize()
        times.append(clock() - start)
    return statistics.median(times)
