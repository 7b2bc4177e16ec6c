"""."""

import torch


def rms_norm(x, weight, eps):
    h = x.float()
    return torch.nan_to_num(h / h.square().mean(-1, keepdim=True).sqrt() * weight).to(x.dtype)
