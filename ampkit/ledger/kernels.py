"""GpuKernels: makes fake CUDA keep for attention and recurrent layers what the kernels of a GPU keep."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

__all__ = ["GpuKernels"]

ATTENTION_NOTE = (
    "Attention is counted as flash attention (FP16, BF16 without a mask) or memory-efficient attention (all else), "
    "which PyTorch chooses on a GPU; neither keeps the scores."
)
RECURRENT_NOTE = (
    "Recurrent layers are counted with PyTorch's own cells, because cuDNN tells the size of what it keeps only on a "
    "GPU: take their saved activations as an estimate."
)
_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")
_CONVOLUTIONS = tuple(f"conv{'_transpose' if back else ''}{d}d" for back in (False, True) for d in (1, 2, 3))
_ATTENTION = F.scaled_dot_product_attention
_LONGEST_HEAD = (
    256  # of flash attention: aten/src/ATen/native/transformers/cuda/sdp_utils.cpp, check_head_dim_size_flash
)


class GpuKernels(TorchFunctionMode):
    """A function mode under which fake CUDA calls what a GPU would call, where the choice needs to ask the GPU.

    Without a GPU, F.scaled_dot_product_attention falls back to the product that keeps all scores, and cuDNN's recurrent
    layers raise. Here attention goes to PyTorch's own flash or memory-efficient operator by the rules of sdp_utils.cpp
    (Ampere or newer), as far as the switches in torch.backends.cuda allow it.

    notes       what was replaced, each a sentence
    conv_bytes  input and output of the largest convolution, in the dtype that it computes in
    """

    def __init__(self) -> None:
        super().__init__()
        self.notes: dict[str, None] = {}  # in the order of their first use
        self.conv_bytes = 0

    def __enter__(self) -> GpuKernels:
        F.scaled_dot_product_attention = self._attention  # F.multi_head_attention_forward's call of it passes no mode
        return super().__enter__()

    def __exit__(self, *raised: object) -> None:
        F.scaled_dot_product_attention = _ATTENTION
        super().__exit__(*raised)

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        if function is _ATTENTION:
            return self._attention(*args, **kwargs)
        if name in _RECURRENT:
            self.notes[RECURRENT_NOTE] = None
            return self._recurrent(function, args, kwargs)
        result = function(*args, **kwargs)
        if name in _CONVOLUTIONS and isinstance(result, Tensor):
            size = (args[0].numel() + result.numel()) * result.element_size()
            self.conv_bytes = max(self.conv_bytes, size)
        return result

    def _recurrent(self, function: Any, args: Any, kwargs: Any) -> Any:
        with torch.backends.cudnn.flags(enabled=False):
            if not torch.is_autocast_enabled("cuda"):
                return function(*args, **kwargs)
            dtype = torch.get_autocast_dtype("cuda")  # cuDNN's weights are cast once, and not once a time step

            def cast(value: Any) -> Any:
                return value.to(dtype) if isinstance(value, Tensor) and value.dtype is torch.float32 else value

            args, kwargs = tree_map(cast, (args, kwargs))
            with torch.autocast("cuda", enabled=False):
                return function(*args, **kwargs)

    def _attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        if torch.is_autocast_enabled("cuda"):  # attention is on the lower-precision list
            dtype = torch.get_autocast_dtype("cuda")
            query, key, value = (x.to(dtype) if x.is_floating_point() else x for x in (query, key, value))
            if attn_mask is not None and attn_mask.is_floating_point():
                attn_mask = attn_mask.to(dtype)
        heads_alike = query.shape[-1] == key.shape[-1] == value.shape[-1] and (
            enable_gqa or query.dim() < 3 or query.shape[-3] == key.shape[-3]
        )
        plain = query.dim() == 4 and heads_alike and not query.is_nested
        half = query.dtype in (torch.float16, torch.bfloat16)
        flash = half and attn_mask is None and query.shape[-1] <= _LONGEST_HEAD
        if plain and flash and torch.backends.cuda.flash_sdp_enabled():
            self.notes[ATTENTION_NOTE] = None
            width = query.shape[-1]
            padding = -width % 8
            if padding:
                query, key, value = (F.pad(x, (0, padding)) for x in (query, key, value))
            scale = width**-0.5 if scale is None else scale
            operator = torch.ops.aten._scaled_dot_product_flash_attention
            return operator(query, key, value, dropout_p, is_causal, scale=scale)[0][..., :width]
        if plain and not enable_gqa and torch.backends.cuda.mem_efficient_sdp_enabled():
            self.notes[ATTENTION_NOTE] = None
            bias = None if attn_mask is None else self._bias(attn_mask, query, key)
            operator = torch.ops.aten._scaled_dot_product_efficient_attention
            return operator(query, key, value, bias, True, dropout_p, is_causal, scale=scale)[0]
        return _ATTENTION(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)

    def _bias(self, mask: Tensor, query: Tensor, key: Tensor) -> Tensor:
        if mask.dtype is torch.bool:  # as convert_boolean_attn_mask
            mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill(mask.logical_not(), float("-inf"))
        length = mask.shape[-1]
        if length % 8:  # as pad_bias
            mask = F.pad(mask, (0, -length % 8))[..., :length]
        return mask.expand(*query.shape[:3], key.shape[-2])
