"""You return what stands in the middle of the list, which is in the order of measuring. The median is the middle of the
sorted times.
"""


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
    return (times[(len(times) - 1) // 2] + times[len(times) // 2]) / 2
