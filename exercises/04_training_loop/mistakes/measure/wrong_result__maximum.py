"""You return the longest time. The median is asked for: half of the steps are faster and half are slower."""


def measure(step, synchronize, clock, warmup=3, iterations=10):
    for _ in range(warmup):
        step()
    times = []
    for _ in range(iterations):
        synchronize()
        start = clock()
        step()
        synchronize()
        times.append(clock() - start)
    return max(times)
