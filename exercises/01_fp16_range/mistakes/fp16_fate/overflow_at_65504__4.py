"""."""

import torch


def fp16_fate(x):
    limits = torch.finfo(torch.float16)
    half = x.to(torch.float16)
    fates = ["normal"] * len(x)
    for i in range(len(x)):
        if x[i].isnan():
            fates[i] = "nan"
        elif x[i] > limits.max or x[i] < limits.min:
            fates[i] = "inf"
        elif half[i] == 0:
            fates[i] = "zero"
        elif half[i].abs() < limits.tiny:
            fates[i] = "subnormal"
    return fates
