"""."""

import torch


def fp16_fate(x):
    a, half = x.abs(), x.half().abs()
    names = []
    for value, h in zip(a, half, strict=True):
        if value.isnan():
            names.append("nan")
        elif value > 65520:
            names.append("inf")
        elif h == 0:
            names.append("zero")
        elif h < torch.finfo(torch.float16).smallest_normal:
            names.append("subnormal")
        else:
            names.append("normal")
    return names
