"""Scaled by the largest element first, eps with it."""

import torch


def rms_norm(x, weight, eps):
    h = x.float()
    largest = h.abs().amax(dim=-1, keepdim=True).clamp(min=1e-6)
    scaled = h / largest
    rms = largest * torch.sqrt((scaled * scaled).mean(dim=-1, keepdim=True) + eps / largest**2)
    return (h * (weight / rms)).to(x.dtype)
