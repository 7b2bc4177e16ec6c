"""Updates that the dtype itself turns into zero are not counted. They were not zero when they were given, and
nothing is left of them: those are lost as well. Which of your two updates do you compare with zero?"""


def count_lost_updates(weight, update, dtype):
    w, u = weight.to(dtype), update.to(dtype)
    return int(((w + u == w) & (u != 0)).sum())
