"""."""


def count_lost_updates(weight, update, dtype):
    held = weight.to(dtype)
    return int(((held + update == held) & (update != 0)).sum())
