"""."""


def count_lost_updates(weight, update, dtype):
    before = weight.to(dtype)
    after = before + update.to(dtype)
    return weight.numel() - (after != before).sum().item()
