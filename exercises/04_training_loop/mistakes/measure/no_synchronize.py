"""The time is that of queueing the work: nothing waits until the device is done. Look at what is still running when you
read the clock.
"""

import statistics


def measure(step, synchronize, clock, warmup=3, iterations=10):
    for _ in range(warmup):
        step()
    times = []
    for _ in range(iterations):
        start = clock()
        step()
        times.append(clock() - start)
    return statistics.median(times)
