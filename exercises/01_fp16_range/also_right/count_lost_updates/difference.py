"""What the addition has changed, by subtraction; counted by count_nonzero."""

import torch


def count_lost_updates(weight: torch.Tensor, update: torch.Tensor, dtype: torch.dtype) -> int:
    before = weight.to(dtype)
    change = before.add(update.to(dtype)).sub(before)
    return int(torch.count_nonzero(update)) - int(torch.count_nonzero(change))
