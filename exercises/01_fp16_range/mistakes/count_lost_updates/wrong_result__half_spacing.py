"""Updates of exactly half the distance to the next number are all treated alike. A tie goes to the number whose
last bit is 0, which is now the weight, now its neighbour; and below a power of two the next number is nearer."""

import torch


def count_lost_updates(weight, update, dtype):
    w, u = weight.to(dtype), update.to(dtype)
    spacing = torch.nextafter(w.abs(), torch.full_like(w, torch.inf)) - w.abs()
    return int(((u.abs() <= spacing / 2) & (update != 0)).sum())
