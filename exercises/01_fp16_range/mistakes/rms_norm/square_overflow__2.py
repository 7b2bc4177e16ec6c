"""."""

import torch


def rms_norm(x, weight, eps):
    variance = x.square().mean(dim=-1, keepdim=True, dtype=torch.float32)
    return (x * torch.rsqrt(variance + eps) * weight).to(x.dtype)
