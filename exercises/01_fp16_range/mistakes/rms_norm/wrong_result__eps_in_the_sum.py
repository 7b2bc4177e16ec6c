"""Eps is added to the sum of the squares, and divided along with it, so that it is smaller by the length of the row.
The formula adds it once the mean is taken."""


def rms_norm(x, weight, eps):
    h = x.float()
    mean = (h.square().sum(-1, keepdim=True) + eps) / x.shape[-1]
    return (h / mean.sqrt() * weight).to(x.dtype)
