"""."""

import torch


def fp16_mean(x):
    values = x.flatten().tolist()
    return torch.tensor(sum(values) / len(values))
