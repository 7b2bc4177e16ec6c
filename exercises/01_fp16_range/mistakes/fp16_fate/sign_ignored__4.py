"""."""

import torch


def fp16_fate(x):
    half = x.half()
    normal = half >= torch.finfo(torch.float16).tiny
    subnormal = (half > 0) & ~normal
    names = []
    for i in range(len(x)):
        if half[i].isnan():
            names.append("nan")
        elif half[i].isinf():
            names.append("inf")
        elif normal[i]:
            names.append("normal")
        elif subnormal[i]:
            names.append("subnormal")
        else:
            names.append("zero")
    return names
