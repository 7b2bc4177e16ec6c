"""."""


def rms_norm(x, weight, eps):
    h = x.float()
    rms = h.pow(2).mean(-1, keepdim=True).sqrt().clamp(min=eps)
    return (h / rms * weight).to(x.dtype)
