"""."""

import torch


def rms_norm(x, weight, eps):
    # scaled, so that no square overflows
    largest = x.abs().amax(dim=-1, keepdim=True).clamp(min=torch.finfo(x.dtype).tiny)
    scaled = x / largest
    rms = torch.sqrt(scaled.pow(2).mean(-1, keepdim=True) + eps)
    return (scaled / rms * weight).to(x.dtype)
