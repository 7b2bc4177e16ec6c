"""Two middle places of the sorted times, which are one and the same where the number is odd."""


def measure(step, synchronize, clock, warmup=3, iterations=10) -> float:
    [step() for _ in range(warmup)]
    times = []
    for _ in range(iterations):
        synchronize()
        times.append(-clock())
        step()
        synchronize()
        times[-1] += clock()
    times.sort()
    return 0.5 * (times[iterations // 2] + times[~(iterations // 2)])
