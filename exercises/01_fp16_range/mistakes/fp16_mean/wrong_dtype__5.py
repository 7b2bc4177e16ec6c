"""."""


def fp16_mean(x):
    return x.float().mean().bfloat16()
