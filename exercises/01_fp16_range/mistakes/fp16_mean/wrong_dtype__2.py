"""."""


def fp16_mean(x):
    return x.float().mean().item()
