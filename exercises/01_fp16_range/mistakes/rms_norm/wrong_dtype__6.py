"""."""

import torch


def rms_norm(x, weight, eps):
    h = x.double()
    return h / torch.sqrt((h**2).mean(-1, keepdim=True) + eps) * weight
