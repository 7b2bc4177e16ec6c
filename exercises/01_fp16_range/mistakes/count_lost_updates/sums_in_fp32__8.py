"""."""


def count_lost_updates(weight, update, dtype):
    # autocast is about matrix products; an addition stays what it is
    import torch

    with torch.autocast("cpu", dtype=torch.bfloat16):
        after = weight + update
    return int(((after == weight) & (update != 0)).sum())
