"""."""


def count_lost_updates(weight, update, dtype):
    after = weight.to(dtype) + update.to(dtype)
    return int(((after == weight) & (update != 0)).sum())
