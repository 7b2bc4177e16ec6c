"""."""


def rms_norm(x, weight, eps):
    h = x.float()
    size = h.abs().amax(-1, keepdim=True).clamp_min(1e-30)
    h = h / size
    return (h / (h.square().mean(-1, keepdim=True) + eps).sqrt() * weight).to(x.dtype)
