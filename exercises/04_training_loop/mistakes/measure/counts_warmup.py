"""The warm-up steps are in the list of times, and they are the slow ones. Look at which calls are timed."""

import statistics


def measure(step, synchronize, clock, warmup=3, iterations=10):
    times = []
    for _ in range(warmup + iterations):
        synchronize()
        start = clock()
        step()
        synchronize()
        times.append(clock() - start)
    return statistics.median(times)
