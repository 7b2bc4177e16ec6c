"""."""


def count_lost_updates(weight, update, dtype):
    w, u = weight.to(dtype), update.to(dtype)
    after = w.float() + u.float()
    return int(((after == w.float()) & (update != 0)).sum())
