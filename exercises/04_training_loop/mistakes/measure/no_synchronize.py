"""The time is that of queueing a step and not that of running it: the clock is read while the step is still under way.
Look at what the device is doing at every reading of the clock.
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
