"""."""

import torch


def fp16_mean(x):
    total = torch.zeros((), dtype=torch.float16)
    for value in x.flatten():
        total = total + value
    return total / x.numel()
