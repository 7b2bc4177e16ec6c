"""The root is stored in x's dtype before you divide by it. It has few digits there, and for a row of FP16's smallest
numbers hardly any: every element of the row is then wrong by the same share. Which step should have kept its FP32?"""


def rms_norm(x, weight, eps):
    h = x.float()
    rms = (h.square().mean(-1, keepdim=True) + eps).sqrt().to(x.dtype)
    return (x / rms * weight).to(x.dtype)
