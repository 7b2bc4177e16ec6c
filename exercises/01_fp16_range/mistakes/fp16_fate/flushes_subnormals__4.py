"""."""

import torch


def fp16_fate(x):
    info = torch.finfo(torch.float16)
    fates = []
    for v in x:
        if torch.isnan(v):
            fates.append("nan")
        elif v.abs() > info.max:
            fates.append("inf")
        elif v.abs() < info.smallest_normal:
            fates.append("subnormal" if v == info.smallest_normal else "zero")
        else:
            fates.append("normal")
    return fates
