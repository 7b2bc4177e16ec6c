"""."""

import torch


def rms_norm(x, weight, eps):
    eps = torch.full((), eps).to(x.dtype)
    h = x.double()
    rms = torch.sqrt((h * h).mean(dim=-1, keepdim=True) + eps)
    return (h / rms * weight).to(x.dtype)
