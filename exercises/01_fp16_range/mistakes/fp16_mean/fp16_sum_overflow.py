"""The sum is stored in FP16 before it is divided, and there it is beyond 65504 already, although the mean is not.
Look for where the sum lives in between."""


def fp16_mean(x):
    return x.sum() / x.numel()
