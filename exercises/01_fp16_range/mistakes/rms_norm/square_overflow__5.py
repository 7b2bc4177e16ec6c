"""."""

import torch


def rms_norm(x, weight, eps):
    # x.norm() squares in FP32 inside, but what it returns is stored
    norm = x.norm(dim=-1, keepdim=True)
    rms = torch.sqrt(norm**2 / x.shape[-1] + eps)
    return (x / rms * weight).to(x.dtype)
