"""There is no warm-up: the first steps, which are the slow ones, are timed like the others. Look at what `warmup` does
in your code.
"""

import statistics


def measure(step, synchronize, clock, warmup=3, iterations=10):
    times = []
    for _ in range(iterations):
        synchronize()
        start = clock()
        step()
        synchronize()
        times.append(clock() - start)
    return statistics.median(times)
