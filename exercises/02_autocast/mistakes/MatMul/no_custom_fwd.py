"""Under autocast your backward does not know what forward ran in: forward saved FP32 matrices, the gradient that
arrives is of autocast's dtype, and the two do not multiply. torch.amp has a decorator for each of the two methods,
and they work as a pair.
"""

import torch


class MatMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad @ b.T, a.T @ grad
