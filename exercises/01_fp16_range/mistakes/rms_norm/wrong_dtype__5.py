"""."""

import torch


def rms_norm(x, weight, eps):
    h = x.float()
    normed = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps)
    return (normed * weight).to(weight.dtype)
