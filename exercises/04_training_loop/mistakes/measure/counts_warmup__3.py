"""The warm-up steps were taken out of the iterations, so fewer steps are timed than were asked for. Count the calls of
step().
"""

import statistics


def measure(step, synchronize, clock, warmup=3, iterations=10):
    times = []
    for i in range(max(iterations, warmup + 1)):
        synchronize()
        start = clock()
        step()
        synchronize()
        if i >= warmup:
            times.append(clock() - start)
    return statistics.median(times)
