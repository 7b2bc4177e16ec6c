"""The numbers pass through BF16, which has the range, and three bits fewer than FP16. The result is several
spacings of FP16 away."""


def fp16_mean(x):
    return x.bfloat16().mean().half()
