"""Layers that cast by themselves: FP32 weights, arithmetic in the dtype of the input, norms in FP32. No autocast."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ampkit.errors import ModelError

__all__ = ["cast_per_op"]


class Linear(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.to(x.dtype), _to(self.bias, x.dtype))


class Conv2d(nn.Conv2d):
    def forward(self, x: Tensor) -> Tensor:
        return self._conv_forward(x, self.weight.to(x.dtype), _to(self.bias, x.dtype))


class LayerNorm(nn.LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.float()).to(x.dtype)


class BatchNorm2d(nn.BatchNorm2d):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.float()).to(x.dtype)


class Embedding(nn.Embedding):
    """Where tokens become numbers: the only layer whose input does not say the dtype."""

    dtype: torch.dtype

    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(tokens).to(self.dtype)


def _to(bias: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    return None if bias is None else bias.to(dtype)


_CASTING = {
    nn.Linear: Linear,
    nn.Conv2d: Conv2d,
    nn.LayerNorm: LayerNorm,
    nn.BatchNorm2d: BatchNorm2d,
    nn.Embedding: Embedding,
}


def cast_per_op(model: nn.Module, dtype: torch.dtype = torch.bfloat16) -> None:
    """Give the model's layers the forward of this file, in place; parameters and names in state_dict stay as they are.

    dtype is what embeddings give out. Images are cast by whoever calls the model. Raises ModelError, before anything is
    changed, for a layer with parameters that has no casting forward here.
    """
    layers = [
        (name, module) for name, module in model.named_modules() if next(module.parameters(False), None) is not None
    ]
    unknown = [f"{name} ({type(m).__name__})" for name, m in layers if type(m) not in {*_CASTING, *_CASTING.values()}]
    if unknown:
        known = ", ".join(layer.__name__ for layer in _CASTING)
        raise ModelError(
            f"These layers do not cast their weights, and would compute in FP32 or fail: {', '.join(unknown[:5])}. "
            f"There are casting forwards for {known}. Train the model with autocast (loop bf16), or write its casts."
        )
    for _, module in layers:
        module.__class__ = _CASTING.get(type(module), type(module))
        if isinstance(module, Embedding):
            module.dtype = dtype
