"""Zeros are left out, so that the mean is that of the other numbers. A zero adds nothing to the sum, and it still is
one of the elements that the sum is divided by."""

import torch


def fp16_mean(x):
    values = x.float()
    values = values[values != 0]
    return values.mean().half() if len(values) else torch.zeros((), dtype=torch.float16)
