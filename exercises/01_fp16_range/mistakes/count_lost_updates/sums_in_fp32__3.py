"""."""


def count_lost_updates(weight, update, dtype):
    held = weight.to(dtype)
    after = (held + update).to(dtype)
    return int(((after == held) & (update != 0)).sum())
