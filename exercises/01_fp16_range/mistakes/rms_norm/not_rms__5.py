"""."""

import torch


def rms_norm(x, weight, eps):
    h = x.float()
    mean = h.mean(dim=-1, keepdim=True)
    rms = torch.sqrt((h * h).mean(dim=-1, keepdim=True) + eps)
    return ((h - mean) / rms * weight).to(x.dtype)
