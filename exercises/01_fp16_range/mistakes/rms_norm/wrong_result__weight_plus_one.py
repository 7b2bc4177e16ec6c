"""The rows are multiplied by 1 + weight. Some models store the weight that way; here it is the factor itself."""

import torch


def rms_norm(x, weight, eps):
    h = x.float()
    return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps) * (1 + weight)).to(x.dtype)
