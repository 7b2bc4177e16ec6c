"""You compare updates with eps, whatever the weight is. Eps is the distance between numbers just above 1; the
weights here are of other sizes."""

import torch


def count_lost_updates(weight, update, dtype):
    return int(((update.abs() < torch.finfo(dtype).eps) & (update != 0)).sum())
