"""A table of all values, made by counting up the spacings from zero."""


def values():
    value, spacing = 0.0, 2.0**-24
    for pattern in range(0x7C00):
        if pattern >= 2048 and pattern % 1024 == 0:
            spacing *= 2
        yield value
        value += spacing
    yield float("inf")
    for _ in range(1023):
        yield float("nan")


TABLE = list(values())


def decode_half(bits):
    value = TABLE[bits & 0x7FFF]
    return -value if bits & 0x8000 else value
