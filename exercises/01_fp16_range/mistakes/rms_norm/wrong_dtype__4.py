"""."""

import torch


def rms_norm(x, weight, eps):
    return torch.nn.functional.rms_norm(x.float(), weight.shape, weight, eps)
