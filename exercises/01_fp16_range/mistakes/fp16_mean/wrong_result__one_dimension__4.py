"""."""


def fp16_mean(x):
    x = x.float()
    return (x.mean((-2, -1)) if x.dim() >= 2 else x.mean()).half()
