"""."""

import torch


def fp16_fate(x):
    # what is within eps of zero is zero
    half = x.half().float()
    names = []
    for h in half.tolist():
        if h != h:
            names.append("nan")
        elif abs(h) == float("inf"):
            names.append("inf")
        elif abs(h) <= torch.finfo(torch.float16).smallest_normal / 2:
            names.append("zero")
        elif abs(h) < torch.finfo(torch.float16).smallest_normal:
            names.append("subnormal")
        else:
            names.append("normal")
    return names
