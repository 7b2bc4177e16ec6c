"""Something here is added or kept in FP32, where there is room for the update. Follow weight, update and their
sum, and ask at each point which dtype they are stored in."""


def count_lost_updates(weight, update, dtype):
    lost = (weight + update == weight) & (update != 0)
    return int(lost.sum())
