"""The number may be right, and it is printed alike, but it is a float. A count is a whole number: the docstring asks
for a Python int."""


def count_lost_updates(weight, update, dtype):
    held = weight.to(dtype)
    lost = (held + update.to(dtype) == held) & (update != 0)
    return lost.float().sum().item()
