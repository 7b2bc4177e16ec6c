"""."""


def count_lost_updates(weight, update, dtype):
    lost = 0
    for w, u in zip(weight.to(dtype).flatten(), update.to(dtype).flatten(), strict=True):
        if w + u == w:
            lost += 1
    return lost
