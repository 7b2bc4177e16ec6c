"""In place, on clones."""


def count_lost_updates(weight, update, dtype):
    held = weight.clone().to(dtype)
    before = held.clone()
    held.add_(update.to(dtype))
    return held.eq(before).logical_and(update.ne(0)).sum().item()
