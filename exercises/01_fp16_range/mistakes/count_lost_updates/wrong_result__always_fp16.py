"""The count is that of FP16 whatever dtype is asked for. Look at where your code uses its last argument."""


def count_lost_updates(weight, update, dtype):
    w, u = weight.half(), update.half()
    return int(((w + u == w) & (update != 0)).sum())
