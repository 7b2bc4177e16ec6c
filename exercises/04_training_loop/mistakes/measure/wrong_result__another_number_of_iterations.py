"""Another number of steps was timed than was asked for. Count the calls of step() after the warm-up, for iterations 4."""

import statistics


def measure(step, synchronize, clock, warmup=3, iterations=10):
    for _ in range(warmup):
        step()
    times = []
    for _ in range(max(1, iterations - 1)):
        synchronize()
        start = clock()
        step()
        synchronize()
        times.append(clock() - start)
    return statistics.median(times)
