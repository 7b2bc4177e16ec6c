"""Another number of warm-up steps was made than was asked for. Count the calls of step() before the first reading of the
clock, for warmup 0 too."""

import statistics


def measure(step, synchronize, clock, warmup=3, iterations=10):
    for _ in range(warmup or 3):
        step()
    times = []
    for _ in range(iterations):
        synchronize()
        start = clock()
        step()
        synchronize()
        times.append(clock() - start)
    return statistics.median(times)
