"""."""

import torch


def rms_norm(x, weight, eps):
    h = x.float()
    inverse = torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps).to(x.dtype)
    return (h * inverse.float() * weight).to(x.dtype)
