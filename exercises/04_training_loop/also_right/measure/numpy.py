"""numpy's median of an array, as a Python float."""

import numpy as np


def measure(step, synchronize, clock, warmup=3, iterations=10) -> float:
    for _ in range(warmup):
        step()
    times = np.empty(iterations)
    for i in range(iterations):
        synchronize()
        start = clock()
        step()
        synchronize()
        times[i] = clock() - start
    return float(np.median(times))
