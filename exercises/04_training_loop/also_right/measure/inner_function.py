"""A function that reads the clock only after a synchronization; also after each warm-up step."""

import statistics


def measure(step, synchronize, clock, warmup=3, iterations=10) -> float:
    def now():
        synchronize()
        return clock()

    def timed():
        start = now()
        step()
        return now() - start

    for _ in range(warmup):
        timed()
    return float(statistics.median([timed() for _ in range(iterations)]))
