"""Only the beginning waits until the device is done; each step is timed while it is still queued. Look at what is
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
        times.append(clock() - start)
    return statistics.median(times)
