"""Where the number of times is even you return one of the middle two. The mean of both is asked for; look at what your
index is for 4 times.
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
    return sorted(times)[len(times) // 2]
