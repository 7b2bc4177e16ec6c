"""."""


def count_lost_updates(weight, update, dtype):
    difference = (weight.to(dtype) + update.to(dtype)) - weight.to(dtype)
    return len(difference.flatten()) - len(difference.nonzero())
