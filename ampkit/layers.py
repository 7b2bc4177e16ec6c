"""Layers that need another precision than the rest: FP32 islands, half models with FP32 norms, BatchNorm under overflow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from ampkit.errors import LayerError

__all__ = [
    "NORMS",
    "HalfReport",
    "fp32_island",
    "guard_batchnorm",
    "half_except_norms",
    "recalibrate_batchnorm",
    "with_forward",
]

_BATCHNORMS = (nn.modules.batchnorm._BatchNorm,)  # BatchNorm1d, 2d, 3d, the lazy ones and SyncBatchNorm
NORMS = (*_BATCHNORMS, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)


def fp32_island(module: nn.Module) -> nn.Module:
    """Let this module, in place, compute in FP32 inside any autocast region; returns the same module.

    Autocast is switched off around its forward, and floating-point tensors among its arguments (nested ones too) are
    cast with .float(): one without the other either changes nothing or raises "expected m1 and m2 to have the same
    dtype". Its parameters must be FP32. The result is FP32; the names in the state_dict stay, because nothing is
    wrapped around the module: only its class is exchanged for one derived from it.

    Price: the island's activations take 4 bytes an element instead of 2, and its products run at FP32 speed.
    Raises LayerError if a parameter is not FP32. Source: torch/amp/autocast_mode.py, the docstring's nested example.

    >>> model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    >>> keys = list(model.state_dict())
    >>> _ = fp32_island(model[1])
    >>> with torch.autocast("cpu", dtype=torch.bfloat16):
    ...     print(model[0](torch.ones(1, 4)).dtype, model(torch.ones(1, 4)).dtype, list(model.state_dict()) == keys)
    torch.bfloat16 torch.float32 True
    """
    lower = [name for name, p in module.named_parameters() if p.is_floating_point() and p.dtype is not torch.float32]
    if lower:
        raise LayerError(
            f"An FP32 island computes with FP32 weights, and {lower[0]} is {module.get_parameter(lower[0]).dtype}. "
            "Call module.float() first; for weights that were trained in FP32, load them again rather than cast back."
        )
    return with_forward(module, "FP32Island", _island_forward)


def _island_forward(forward: Callable[..., Any]) -> Callable[..., Any]:
    def in_fp32(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(_floated, (args, kwargs))
        with _no_autocast():
            return forward(self, *args, **kwargs)

    return in_fp32


def _floated(value: Any) -> Any:
    return value.float() if isinstance(value, Tensor) and value.is_floating_point() else value


@contextmanager
def _no_autocast() -> Iterator[None]:
    """Autocast off on both device types, whichever is on: an island must not ask where its inputs are."""
    with torch.autocast("cpu", enabled=False):
        if not torch.is_autocast_enabled("cuda"):
            yield
            return
        with torch.autocast("cuda", enabled=False):
            yield


def with_forward(
    module: nn.Module, kind: str, changed: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> nn.Module:
    """Exchange the module's class for one derived from it whose forward is changed(forward); once, however often asked.

    isinstance, state_dict, deepcopy, parameters and hooks are as before, which no wrapper module can say of itself.
    """
    before = type(module)
    if not getattr(before, f"_is_{kind}", False):
        body = {"forward": changed(before.forward), f"_is_{kind}": True, "__module__": before.__module__}
        module.__class__ = type(f"{kind}{before.__name__}", (before,), body)
    return module


@dataclass(frozen=True)
class HalfReport:
    """What half_except_norms did: parameter and buffer bytes before and after, and the modules that stayed FP32."""

    bytes_before: int
    bytes_after: int
    fp32_modules: tuple[str, ...]

    def __str__(self) -> str:
        saved = 1 - self.bytes_after / self.bytes_before if self.bytes_before else 0.0
        return (
            f"{self.bytes_before / 2**20:.2f} MiB -> {self.bytes_after / 2**20:.2f} MiB ({saved:.0%} less); "
            f"{len(self.fp32_modules)} norm(s) in FP32"
        )


def half_except_norms(model: nn.Module, dtype: torch.dtype = torch.float16) -> HalfReport:
    """Cast the model to dtype in place, except for its normalization layers, which stay FP32 and compute in FP32.

    For inference, or for training through FP32 master weights: in a model whose own weights are FP16 small updates are
    lost. A norm that stays FP32 takes input of dtype, computes in FP32 and hands on dtype again, so that the layer after
    it finds what it expects. dtype is torch.float16 or torch.bfloat16. Raises LayerError for another.

    >>> model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8))
    >>> report = half_except_norms(model, torch.bfloat16)
    >>> [p.dtype for p in model.parameters()] == [torch.bfloat16] * 2 + [torch.float32] * 2 + [torch.bfloat16] * 2
    True
    >>> model(torch.ones(1, 8, dtype=torch.bfloat16)).dtype, report.fp32_modules
    (torch.bfloat16, ('1',))
    """
    if dtype not in (torch.float16, torch.bfloat16):
        raise LayerError(f"A half model is torch.float16 or torch.bfloat16, and not {dtype}.")
    before = _bytes(model)
    norms = {name: module for name, module in model.named_modules() if isinstance(module, NORMS)}
    kept = {id(tensor) for norm in norms.values() for tensor in [*norm.parameters(), *norm.buffers()]}
    with torch.no_grad():
        for tensor in [*model.parameters(), *model.buffers()]:
            if tensor.is_floating_point() and id(tensor) not in kept:
                tensor.data = tensor.data.to(dtype)
    for module in model.modules():
        if isinstance(module, nn.RNNBase):
            module.flatten_parameters()
    for norm in norms.values():
        norm.float()
        with_forward(norm, "FP32Norm", _norm_forward)
    return HalfReport(before, _bytes(model), tuple(norms))


def _norm_forward(forward: Callable[..., Any]) -> Callable[..., Any]:
    def in_fp32(self: nn.Module, input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        with _no_autocast():
            return forward(self, input.float(), *args, **kwargs).to(input.dtype)

    return in_fp32


def _bytes(model: nn.Module) -> int:
    return sum(tensor.nbytes for tensor in [*model.parameters(), *model.buffers()])


def guard_batchnorm(model: nn.Module) -> list[str]:
    """Keep overflow out of the running statistics of every BatchNorm in the model, in place; returns their names.

    A GradScaler skips the step after an overflow, but the forward has already written the inf into running_mean and
    running_var, and eval() is NaN from then on (https://github.com/pytorch/pytorch/issues/88474). A guarded layer whose
    running statistics would become non-finite keeps those it had, num_batches_tracked too, by torch.where on the
    device: no CPU-GPU sync. Its output is not touched, so the loss still says that something overflowed.

    Price: a copy of the statistics in each training forward, 8 bytes a channel, and three small kernels.
    Raises LayerError if the model has no BatchNorm with running statistics.

    >>> norm = nn.BatchNorm1d(2)
    >>> guard_batchnorm(norm)
    ['']
    >>> _ = norm(torch.full((4, 2), torch.inf))
    >>> norm.running_mean, norm.num_batches_tracked.item()
    (tensor([0., 0.]), 0)
    """
    guarded = [name for name, module in model.named_modules() if _tracks(module)]
    if not guarded:
        raise LayerError("This model has no BatchNorm with running statistics, so there is nothing to guard.")
    for name in guarded:
        with_forward(model.get_submodule(name), "Guarded", _guarded_forward)
    return guarded


def _tracks(module: nn.Module) -> bool:
    return isinstance(module, _BATCHNORMS) and module.track_running_stats and module.running_mean is not None


def _guarded_forward(forward: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(self: nn.Module, input: Tensor) -> Tensor:
        if not self.training:
            return forward(self, input)
        statistics = (self.running_mean, self.running_var, self.num_batches_tracked)
        before = [statistic.clone() for statistic in statistics]
        output = forward(self, input)
        with torch.no_grad():
            finite = self.running_mean.isfinite().all() & self.running_var.isfinite().all()
            was_finite = before[0].isfinite().all() & before[1].isfinite().all()
            keep = ~finite & was_finite  # statistics that are ruined already are for recalibrate_batchnorm
            for statistic, old in zip(statistics, before, strict=True):
                statistic.copy_(torch.where(keep, old, statistic))
        return output

    return guarded


def recalibrate_batchnorm(model: nn.Module, batches: Iterable[Any], device: str = "cpu") -> int:
    """Compute the running statistics of every BatchNorm anew, in place, as plain means over the batches; returns how many.

    For statistics that an overflow has ruined, and for weights that were averaged or cast after training. batches holds
    inputs, or tuples whose first part is the input. The weights are not touched, all runs in FP32 without autocast and
    gradients, and training or eval mode and momentum are as before. Only BatchNorm is in training mode meanwhile, so
    dropout stays off. Price: one forward pass for each batch.

    Raises LayerError without BatchNorm, without a batch, or if the statistics are not finite in FP32 either.
    """
    norms = {name: module for name, module in model.named_modules() if _tracks(module)}
    if not norms:
        raise LayerError("This model has no BatchNorm with running statistics, so there is nothing to recalibrate.")
    modes = {module: module.training for module in model.modules()}
    momenta = {norm: norm.momentum for norm in norms.values()}
    count = 0
    try:
        model.eval()
        for norm in norms.values():
            norm.reset_running_stats()
            norm.momentum = None  # PyTorch's cumulative mean: every batch weighs the same
            norm.train()
        with torch.no_grad(), _no_autocast():
            for batch in batches:
                model((batch if isinstance(batch, Tensor) else batch[0]).to(device))
                count += 1
    finally:
        for norm, momentum in momenta.items():
            norm.momentum = momentum
        for module, mode in modes.items():
            module.training = mode
    if not count:
        raise LayerError("No batch came, so the running statistics are PyTorch's initial ones now. Pass some batches.")
    for name, norm in norms.items():
        if not (norm.running_mean.isfinite().all() and norm.running_var.isfinite().all()):
            raise LayerError(
                f"The input of {name} is not finite in FP32 either, so its statistics cannot be computed. Look for the "
                "inf or nan in the data or in the weights before it."
            )
    return count
