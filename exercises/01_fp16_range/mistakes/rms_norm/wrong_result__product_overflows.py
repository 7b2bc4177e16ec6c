"""x and weight are multiplied in FP16 before anything is divided. With x near 60000 a weight of 1.75 is enough for
that product to be inf, although the result is a small number; look at the dtype of each product on the way."""


def rms_norm(x, weight, eps):
    rms = (x.float().square().mean(-1, keepdim=True) + eps).sqrt()
    return ((x * weight.to(x.dtype)).float() / rms).to(x.dtype)
