"""The rows are normalized, and nothing is multiplied by the weight. Look at where your code uses its second
argument."""

import torch


def rms_norm(x, weight, eps):
    h = x.float()
    return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype)
