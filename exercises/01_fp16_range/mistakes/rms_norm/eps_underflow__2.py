"""."""


def rms_norm(x, weight, eps):
    # every sum is in FP32; eps comes when the result is back in x's dtype
    mean_square = x.float().pow(2).mean(-1, keepdim=True).to(x.dtype)
    rms = (mean_square + eps).sqrt()
    return (x / rms * weight).to(x.dtype)
