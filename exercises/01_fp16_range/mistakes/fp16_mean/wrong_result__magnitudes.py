"""The mean of the magnitudes came back. Negative numbers count as they are: look for what takes their sign away."""


def fp16_mean(x):
    return x.float().abs().mean().half()
