"""A negative number got the fate of another size. What FP16 does depends on the magnitude alone; look at what your
comparisons say about -100 and about -1e6."""

import torch


def fp16_fate(x):
    fates = []
    for h in x.half():
        if h.isnan():
            fates.append("nan")
        elif h.isinf():
            fates.append("inf")
        elif h == 0:
            fates.append("zero")
        elif h < torch.finfo(torch.float16).tiny:
            fates.append("subnormal")
        else:
            fates.append("normal")
    return fates
