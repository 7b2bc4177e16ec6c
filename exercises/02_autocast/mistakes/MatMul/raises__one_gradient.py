"""Your backward gives back one gradient where forward had two inputs. It owes one for each argument of forward, in
their order, or None where none is needed.
"""

import torch


class MatMul(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu")
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        _, b = ctx.saved_tensors
        return grad @ b.T
