"""You divide by the length of the row, the root of the sum of its squares. RMSNorm takes the root of their mean."""

import torch


def rms_norm(x, weight, eps):
    h = x.float()
    return (h * torch.rsqrt(h.pow(2).sum(-1, keepdim=True) + eps) * weight).to(x.dtype)
