"""."""


def count_lost_updates(weight, update, dtype):
    before, after = update.count_nonzero(), update.to(dtype).count_nonzero()
    return int(before - after)
