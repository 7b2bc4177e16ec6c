"""."""

import torch


def count_lost_updates(weight, update, dtype):
    ratio = (update / weight).abs()
    return int(((ratio < torch.finfo(dtype).eps) & (ratio > 0)).sum())
