"""You divide by the mean of the squares. What brings a row to size 1 is its root: try a row of four fours."""


def rms_norm(x, weight, eps):
    h = x.float()
    return (h / (h.pow(2).mean(-1, keepdim=True) + eps) * weight).to(x.dtype)
