"""Eps is taken as the least that the mean of the squares may be, where it is to be added to it. Only rows whose mean square is
about as large as eps tell the two apart."""

import torch


def rms_norm(x, weight, eps):
    h = x.float()
    return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True).clamp(min=eps)) * weight).to(x.dtype)
