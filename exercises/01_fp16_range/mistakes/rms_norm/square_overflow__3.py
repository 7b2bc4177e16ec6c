"""."""

import torch


def rms_norm(x, weight, eps):
    variance = (x * x).float().mean(-1, keepdim=True)
    return (weight * (x.float() * torch.rsqrt(variance + eps))).to(x.dtype)
