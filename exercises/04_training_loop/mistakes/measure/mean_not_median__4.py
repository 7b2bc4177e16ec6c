"""."""


def measure(step, synchronize, clock, warmup=3, iterations=10):
    for _ in range(warmup):
        step()
    total = 0.0
    for _ in range(iterations):
        synchronize()
        start = clock()
        step()
        synchronize()
        total += clock() - start
    return total / iterations
