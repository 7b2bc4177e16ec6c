"""."""

import torch


def fp16_mean(x):
    return torch.clamp(x.sum(), max=65504) / x.numel()
