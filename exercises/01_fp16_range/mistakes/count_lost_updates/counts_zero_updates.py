"""Updates that are zero are counted. They change nothing, and nothing is lost by that: ask of each weight that
stayed whether there was an update at all."""


def count_lost_updates(weight, update, dtype):
    w, u = weight.to(dtype), update.to(dtype)
    return int((w + u == w).sum())
