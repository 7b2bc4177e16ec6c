"""The readings of the clock are all taken while steps are queued, and you wait when it is too late. Look at what is
running at every reading of the clock.
"""

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
