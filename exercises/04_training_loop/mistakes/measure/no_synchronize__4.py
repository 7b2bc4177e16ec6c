"""The first reading of the clock did not wait for what had been queued before, so that the first time holds that work
as well. Look at what is still running when you begin.
"""

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
