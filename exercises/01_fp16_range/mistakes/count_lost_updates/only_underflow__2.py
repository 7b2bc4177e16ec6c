"""."""

import torch


def count_lost_updates(weight, update, dtype):
    limit = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps / 2
    return int(((update.abs() <= limit) & (update != 0)).sum())
