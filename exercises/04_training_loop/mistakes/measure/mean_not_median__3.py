"""The whole loop was timed and divided by the number of steps, which is their mean, and one slow step pulls it up. For
a median every step needs a time of its own.
"""


def measure(step, synchronize, clock, warmup=3, iterations=10):
    for _ in range(warmup):
        step()
    synchronize()
    start = clock()
    for _ in range(iterations):
        step()
    synchronize()
    return (clock() - start) / iterations
