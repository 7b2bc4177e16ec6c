"""The product is right, and autocast is off when you return: what the caller computes next, the next of your own
products included, is no longer cast. Switch it off in a form that ends by itself."""

import torch


class MatMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        if torch.is_autocast_enabled("cpu"):
            dtype = torch.get_autocast_dtype("cpu")
            torch.set_autocast_enabled("cpu", False)
            return a.to(dtype) @ b.to(dtype)
        return a @ b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        with torch.autocast("cpu", enabled=False):
            return grad.float() @ b.T, a.T @ grad.float()
