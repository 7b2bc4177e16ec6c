"""The eps that you are given is not the one that you use. Look at a failing row whose squares are about as large
as eps."""

import torch


def rms_norm(x, weight, eps):
    h = x.float()
    eps = max(eps, torch.finfo(x.dtype).eps)
    return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps) * weight).to(x.dtype)
