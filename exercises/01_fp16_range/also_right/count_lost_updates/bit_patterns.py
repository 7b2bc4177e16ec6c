"""The bits before and after."""

import torch


def count_lost_updates(weight, update, dtype):
    pattern = {2: torch.int16, 4: torch.int32}[dtype.itemsize]
    w = weight.to(dtype=dtype)
    after = w + update.to(dtype=dtype)
    same = after.view(pattern) == w.view(pattern)
    return torch.where(update == 0, False, same).sum().item()
