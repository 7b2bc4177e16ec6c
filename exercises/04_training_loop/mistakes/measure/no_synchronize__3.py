"""The first reading of the clock did not wait for what had been queued before, so that the first time holds that work
as well. Look at what is still running when you begin.
"""

import statistics


def measure(step, synchronize, clock, warmup=3, iterations=10):
    for _ in range(warmup):
        step()
    times = []
    for _ in range(iterations):
        start = clock()
        step()
        synchronize()
        times.append(clock() - start)
    return statistics.median(times)
