"""finfo.max plus half a step is the border, compared in Python floats; halving from above."""

import torch


def choose_init_scale(grads):
    info = torch.finfo(torch.float16)
    border = info.max + info.eps * 2**15 / 2  # 65520: half way to the number after 65504
    peak = 0.0
    for grad in grads:
        peak = max(peak, grad.max().item(), -grad.min().item())
    if peak == 0.0:
        return 65536.0
    scale = 2.0**24
    while scale > 1.0 and peak * scale >= border:
        scale /= 2
    return scale
