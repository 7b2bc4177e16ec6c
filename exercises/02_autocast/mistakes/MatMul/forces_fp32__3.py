"""."""

import torch


class MatMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32
        with torch.autocast("cpu", enabled=False):
            return (a @ b).to(dtype)

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        with torch.autocast("cpu", enabled=False):
            return grad.float() @ b.T, a.T @ grad.float()
