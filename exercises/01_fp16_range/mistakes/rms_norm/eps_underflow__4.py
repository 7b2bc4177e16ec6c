"""."""


def rms_norm(x, weight, eps):
    # without eps
    rms = x.float().pow(2).mean(-1, keepdim=True).sqrt()
    return (x / rms * weight).to(x.dtype)
