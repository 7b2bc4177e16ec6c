"""Eps is added to the root. Where the squares are about as large as eps that gives quite another number: the
docstring has it under the root."""


def rms_norm(x, weight, eps):
    h = x.float()
    rms = h.pow(2).mean(-1, keepdim=True).sqrt()
    return (h / (rms + eps) * weight).to(x.dtype)
