"""The number may be right, but it is a tensor. The docstring asks for a Python int."""


def count_lost_updates(weight, update, dtype):
    w, u = weight.to(dtype), update.to(dtype)
    return ((w + u == w) & (update != 0)).sum()
