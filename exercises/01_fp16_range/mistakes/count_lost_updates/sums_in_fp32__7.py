"""."""


def count_lost_updates(weight, update, dtype):
    after = (weight.to(dtype).float() + update).to(dtype)
    same = after == weight.to(dtype)
    return (same & (update != 0)).sum().item()
