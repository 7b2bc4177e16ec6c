"""."""


def count_lost_updates(weight, update, dtype):
    before, after = weight.to(dtype), (weight + update).to(dtype)
    return int(((before == after) & (update != 0)).sum())
