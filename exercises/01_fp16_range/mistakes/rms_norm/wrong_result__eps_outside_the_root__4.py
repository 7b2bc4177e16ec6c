"""."""

import torch


def rms_norm(x, weight, eps):
    h = x.float()
    mean = h.square().mean(-1, keepdim=True)
    mean = torch.where(mean == 0, eps, mean)
    return (h / mean.sqrt() * weight).to(x.dtype)
