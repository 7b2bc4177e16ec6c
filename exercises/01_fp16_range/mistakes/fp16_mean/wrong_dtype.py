"""The value is right and the type is not. The docstring asks for a tensor of dtype `torch.float16` without
dimensions: not FP32, not BF16, and not a Python number."""


def fp16_mean(x):
    return x.float().mean()
