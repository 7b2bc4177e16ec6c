"""."""

import torch


def fp16_mean(x):
    flat = x.flatten()
    return torch.dot(flat, torch.ones_like(flat)) / len(flat)
