"""."""


def count_lost_updates(weight, update, dtype):
    return int((update.to(dtype) == 0).sum())
