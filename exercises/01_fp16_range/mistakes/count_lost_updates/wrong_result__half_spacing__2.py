"""."""

import torch


def count_lost_updates(weight, update, dtype):
    w, u = weight.to(dtype).float(), update.to(dtype).float()
    _, exponent = torch.frexp(w)
    spacing = torch.ldexp(torch.tensor(torch.finfo(dtype).eps), exponent - 1)
    return int(((u.abs() < spacing / 2) & (update != 0)).sum())
