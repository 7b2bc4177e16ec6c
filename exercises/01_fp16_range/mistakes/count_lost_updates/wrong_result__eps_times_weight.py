"""You compare with eps times the weight, which is right only just above a power of two. The distance between
numbers is the same all the way from 1 to 2, and does not grow with the weight in between; better ask the
addition itself."""

import torch


def count_lost_updates(weight, update, dtype):
    limit = torch.finfo(dtype).eps * weight.abs() / 2
    return int(((update.abs() < limit) & (update != 0)).sum())
