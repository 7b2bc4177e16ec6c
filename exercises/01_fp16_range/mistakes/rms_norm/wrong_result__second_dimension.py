"""The mean is taken over the second dimension. That is the last one as long as x is a matrix; with a batch of matrices
the rows lie along another. Count from the end."""


def rms_norm(x, weight, eps):
    h = x.float()
    mean = h.square().mean(1 if x.dim() > 1 else 0, keepdim=True)
    return (h * (mean + eps).rsqrt() * weight).to(x.dtype)
