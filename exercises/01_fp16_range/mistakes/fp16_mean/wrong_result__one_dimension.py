"""You divide by the length of one dimension, or take the mean over one of them. The mean is that of all elements,
whatever the shape."""


def fp16_mean(x):
    if x.dim() == 0:
        return x
    return (x.float().sum() / len(x)).half()
