"""A square, or the mean of the squares, is stored in FP16, where everything above 65519 is inf: from 256 on, every
number has an infinite square. Follow x through your formula and ask which lines need FP32."""

import torch


def rms_norm(x, weight, eps):
    rms = torch.sqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps)
    return (x / rms * weight).to(x.dtype)
