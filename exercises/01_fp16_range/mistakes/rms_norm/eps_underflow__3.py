"""."""


def rms_norm(x, weight, eps):
    rms = x.float().pow(2).mean(-1, keepdim=True).sqrt().to(x.dtype)
    return (x / (rms + eps) * weight).to(x.dtype)
