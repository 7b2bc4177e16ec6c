"""."""

import torch


class MatMul(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu")
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a.mm(b)

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        grad_a = grad_b = None
        if ctx.needs_input_grad[0]:
            grad_a = grad.mm(b.t())
        if ctx.needs_input_grad[1]:
            grad_b = a.t().mm(grad)
        return grad_a, grad_b
