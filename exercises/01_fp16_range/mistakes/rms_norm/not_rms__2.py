"""."""

import torch


def rms_norm(x, weight, eps):
    h = x.float()
    h = h - h.mean(dim=-1, keepdim=True)
    return (h * torch.rsqrt(h.pow(2).mean(dim=-1, keepdim=True) + eps) * weight).to(x.dtype)
