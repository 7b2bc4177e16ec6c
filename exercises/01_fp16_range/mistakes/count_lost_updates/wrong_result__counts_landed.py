"""You count the updates that arrive. The lost ones are the others."""


def count_lost_updates(weight, update, dtype):
    w, u = weight.to(dtype), update.to(dtype)
    return int((w + u != w).sum())
