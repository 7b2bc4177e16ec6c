"""."""


def rms_norm(x, weight, eps):
    mean_square = (x**2).mean(-1, keepdim=True)
    return (x / (mean_square + eps) ** 0.5) * weight.to(x.dtype)
