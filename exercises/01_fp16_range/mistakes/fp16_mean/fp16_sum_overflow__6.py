"""."""


def fp16_mean(x):
    # no element is larger than 1 any more
    largest = x.abs().max()
    return (x / largest).sum() / x.numel() * largest
