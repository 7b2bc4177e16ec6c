"""."""

import torch


def rms_norm(x, weight, eps):
    squares = torch.einsum("...i,...i->...", x, x).unsqueeze(-1)
    rms = torch.sqrt(squares.float() / x.shape[-1] + eps)
    return (x / rms * weight).to(x.dtype)
