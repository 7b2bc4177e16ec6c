"""."""


def fp16_mean(x):
    return sum(x.flatten()) / x.numel()
