"""Divided first, where there is room for it."""


def fp16_mean(x):
    return (x.float() / x.numel()).sum().half()
