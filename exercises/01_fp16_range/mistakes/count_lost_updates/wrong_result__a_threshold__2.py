"""."""

import torch


def count_lost_updates(weight, update, dtype):
    w, u = weight.to(dtype), update.to(dtype)
    return int(((w + u == w) & (update.abs() >= torch.finfo(update.dtype).tiny)).sum())
