"""Numbers just above 65504 are called infinite, and FP16 rounds them down to 65504. Storing rounds to the nearest
number: look for where the next one, 65536, would be nearer."""

import torch


def fp16_fate(x):
    fates = []
    for value, half in zip(x.abs().tolist(), x.half().abs().tolist(), strict=True):
        if value != value:
            fates.append("nan")
        elif value > 65504:
            fates.append("inf")
        elif half == 0:
            fates.append("zero")
        elif half < torch.finfo(torch.float16).tiny:
            fates.append("subnormal")
        else:
            fates.append("normal")
    return fates
