"""The exact sum of the rounded numbers, in FP64, rounded once more."""


def count_lost_updates(weight, update, dtype):
    w, u = weight.to(dtype), update.to(dtype)
    after = (w.double() + u.double()).to(dtype)
    return sum((after.flatten() == w.flatten())[update.flatten() != 0].tolist())
