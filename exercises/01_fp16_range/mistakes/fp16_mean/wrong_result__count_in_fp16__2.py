"""."""

import torch


def fp16_mean(x):
    return (x.float().sum() / torch.ones_like(x).sum()).half()
