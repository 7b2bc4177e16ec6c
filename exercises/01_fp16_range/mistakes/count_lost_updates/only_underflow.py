"""Only updates that become zero by themselves are counted. Most lost updates are ordinary numbers of the dtype
that are too small beside their weight: 1e-4 exists in FP16, and 1 + 1e-4 does not."""


def count_lost_updates(weight, update, dtype):
    return int(((update.to(dtype) == 0) & (update != 0)).sum())
