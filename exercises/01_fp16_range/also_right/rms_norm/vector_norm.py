"""From the FP32 length of a row."""

import torch


def rms_norm(x, weight, eps):
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float32)
    rms = torch.sqrt(length**2 / x.shape[-1] + eps)
    return (x / rms * weight).to(x.dtype)
