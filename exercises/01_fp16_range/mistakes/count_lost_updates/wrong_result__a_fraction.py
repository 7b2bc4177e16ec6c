"""You return a share of the updates. The question is how many there are."""


def count_lost_updates(weight, update, dtype):
    w, u = weight.to(dtype), update.to(dtype)
    lost = (w + u == w) & (update != 0)
    return (lost.sum() / (update != 0).sum()).item()
