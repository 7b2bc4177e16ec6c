"""One warm-up step too few was made, and the last of the slow ones is in your times. Count the calls of step() before
the first reading of the clock.
"""

import statistics


def measure(step, synchronize, clock, warmup=3, iterations=10):
    for _ in range(1, warmup):
        step()
    times = []
    for _ in range(iterations):
        synchronize()
        start = clock()
        step()
        synchronize()
        times.append(clock() - start)
    return statistics.median(times)
