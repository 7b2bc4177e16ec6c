"""."""

import torch


def rms_norm(x, weight, eps):
    h = x.float()
    return (h * torch.rsqrt(h.var(dim=-1, keepdim=True, correction=0) + eps) * weight).to(x.dtype)
