"""."""


def rms_norm(x, weight, eps):
    h = x.float()
    return (h / (h.square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight).to(x.dtype)
