"""."""


def rms_norm(x, weight, eps):
    h = x.float()
    return ((h - h.mean(-1, keepdim=True)) / (h.std(-1, keepdim=True) + eps) * weight).to(x.dtype)
