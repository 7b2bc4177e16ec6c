"""The row is multiplied by the weight before its size is measured, so that the weight counts in the norm as well. The
root is that of x alone, and the weight comes after it."""


def rms_norm(x, weight, eps):
    h = x.float() * weight
    return (h / (h.square().mean(-1, keepdim=True) + eps).sqrt()).to(x.dtype)
