"""A row of zeros gives nan: zero divided by the root of zero. The eps that should prevent it is not there, or has
become zero itself, as 1e-8 does when it is stored in FP16 or added in FP16."""

import torch


def rms_norm(x, weight, eps):
    mean_square = x.float().pow(2).mean(-1, keepdim=True)
    rms = torch.sqrt(mean_square + torch.tensor(eps, dtype=torch.float16))
    return (x.float() / rms * weight).to(x.dtype)
