"""."""

import torch


def fp16_mean(x):
    share = torch.full_like(x, 1 / x.numel())
    return (x * share).sum()
