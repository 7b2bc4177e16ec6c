"""."""

import torch


def count_lost_updates(weight, update, dtype):
    return int(((update.abs() < torch.finfo(dtype).tiny) & (update != 0)).sum())
