"""The warm-up steps were waited for and what the device did before was not, where there is no warm-up. Look at every
reading of the clock, also when a loop before it runs zero times.
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
        synchronize()
        times.append(clock() - start)
    return statistics.median(times)
