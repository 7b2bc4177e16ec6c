"""The value is right and has dimensions. The docstring asks for a 0-dim tensor: look at its shape."""


def fp16_mean(x):
    return x.float().flatten().mean(dim=0, keepdim=True).half()
