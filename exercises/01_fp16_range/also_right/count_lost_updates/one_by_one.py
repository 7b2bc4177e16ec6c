"""Element by element, with 0-dim tensors of the dtype."""

import torch


def count_lost_updates(weight, update, dtype):
    lost = 0
    for w, u in zip(weight.flatten().tolist(), update.flatten().tolist(), strict=True):
        held = torch.tensor(w, dtype=dtype)
        if u and held + torch.tensor(u, dtype=dtype) == held:
            lost += 1
    return lost
