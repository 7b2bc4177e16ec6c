"""Numbers that FP16 cannot hold are called normal, as they are in FP32 and in BF16, whose range is far larger. The
question is about what is left after the numbers have been stored in FP16."""

import torch


def fp16_fate(x):
    tiny = torch.finfo(x.dtype).tiny
    fates = []
    for v in x:
        if v.isnan():
            fates.append("nan")
        elif v.isinf():
            fates.append("inf")
        elif v == 0:
            fates.append("zero")
        elif v.abs() < tiny:
            fates.append("subnormal")
        else:
            fates.append("normal")
    return fates
