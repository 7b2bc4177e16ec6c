"""The clock is read first and the device waited for afterwards, so that the time holds what was queued before and not
the step itself. Look at what the device is doing at every reading of the clock."""

import statistics


def measure(step, synchronize, clock, warmup=3, iterations=10):
    for _ in range(warmup):
        step()
    times = []
    for _ in range(iterations):
        start = clock()
        synchronize()
        step()
        times.append(clock() - start)
    return statistics.median(times)
