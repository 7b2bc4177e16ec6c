import torch
from torch.amp import custom_bwd, custom_fwd


class MatMul(torch.autograd.Function):
    @staticmethod
    @custom_fwd(device_type="cpu")
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return torch.addmm(torch.zeros(1, dtype=a.dtype), a, b)

    @staticmethod
    @custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return torch.einsum("nm,km->nk", grad, b), torch.einsum("nk,nm->km", a, grad)
