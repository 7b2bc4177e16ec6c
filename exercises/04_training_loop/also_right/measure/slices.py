"""Times everything and leaves out the warm-up afterwards."""

import torch


def measure(step, synchronize, clock, warmup=3, iterations=10) -> float:
    times = []
    for _ in range(warmup + iterations):
        synchronize()
        start = clock()
        step()
        synchronize()
        times.append(clock() - start)
    return torch.tensor(times[warmup:], dtype=torch.float64).quantile(0.5).item()
