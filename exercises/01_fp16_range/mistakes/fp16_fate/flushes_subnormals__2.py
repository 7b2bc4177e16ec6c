"""."""

import torch


def fp16_fate(x):
    half = x.half()
    tiny = torch.finfo(torch.float16).tiny
    fates = []
    for h in half:
        if h.isnan():
            fates.append("nan")
        elif h.isinf():
            fates.append("inf")
        elif h.abs() < tiny:
            fates.append("zero")
        else:
            fates.append("normal")
    return fates
