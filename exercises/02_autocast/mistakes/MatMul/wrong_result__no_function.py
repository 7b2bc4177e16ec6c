"""MatMul is no torch.autograd.Function: autograd finds the gradients of PyTorch's own product by itself, which is
fine outside of this exercise. Here forward and backward are yours; keep the first line of the class as it is."""

import torch


class MatMul:
    @staticmethod
    def apply(a, b):
        return torch.matmul(a, b)
