"""The weights that you were given have changed. `weight.to(dtype)` is a copy only where the dtype is another one;
with FP32 it is the very same tensor, and what is added to it in place is added to the caller's."""


def count_lost_updates(weight, update, dtype):
    held = weight.to(dtype)
    before = held.clone()
    held += update.to(dtype)
    return int(((held == before) & (update != 0)).sum())
