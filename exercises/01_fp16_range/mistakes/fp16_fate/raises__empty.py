"""An empty tensor is a tensor, too, and has a fate for each of its elements: none. Look at what your code needs a
first element for."""

import torch


def fp16_fate(x):
    half = x.half().abs()
    largest = half.max()
    fates = []
    for h in half:
        if h.isnan():
            fates.append("nan")
        elif h.isinf() or h > largest:
            fates.append("inf")
        elif h == 0:
            fates.append("zero")
        elif h < torch.finfo(torch.float16).tiny:
            fates.append("subnormal")
        else:
            fates.append("normal")
    return fates
