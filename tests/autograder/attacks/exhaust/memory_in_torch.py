"""Allocates one enormous tensor.

Catalogue: 52e. Stock: yes.
Says: RuntimeError|"why": "memory"
"""
import torch


def f(x):
    return torch.ones(40 << 30, dtype=torch.uint8).sum()
