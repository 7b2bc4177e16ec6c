"""In FP64 throughout."""


def rms_norm(x, weight, eps):
    h = x.double()
    return (h / (h.square().mean(dim=-1, keepdim=True) + eps).sqrt() * weight.double()).to(x.dtype)
