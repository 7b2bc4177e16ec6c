"""The numbers are right and the dtype is not. FP16 times FP32 is FP32, and so is everything after it; the result
has to have x's dtype, whichever that is."""

import torch


def rms_norm(x, weight, eps):
    h = x.float()
    return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps) * weight
