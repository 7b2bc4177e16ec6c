"""What trades something for memory: checkpointing, offload of saved tensors, accumulation, 8-bit optimizers; with the price."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ampkit.errors import LowVramError
from ampkit.layers import with_forward

__all__ = [
    "Offloaded",
    "Price",
    "checkpoint_blocks",
    "eight_bit_adamw",
    "micro_batches",
    "offload",
    "price",
    "repeated_blocks",
]


def repeated_blocks(model: nn.Module) -> list[str]:
    """Names of the model's repeated blocks: children of one list or sequence that are of one class and have parameters.

    Only the outermost are named: of a ResNet its residual blocks, of a transformer its layers. Leaves of torch.nn, such
    as the Linears of an MLP, are no blocks: to compute one of them again costs as much as it saves.

    >>> model = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(3)], nn.Linear(4, 1))
    >>> repeated_blocks(model)
    ['0', '1', '2']
    """
    found: list[str] = []
    for name, module in model.named_modules():
        if any(name == block or name.startswith(f"{block}.") for block in found):
            continue
        if not isinstance(module, nn.ModuleList | nn.Sequential | nn.ModuleDict):
            continue
        blocks: dict[type, list[str]] = {}
        for child_name, child in module.named_children():
            if next(child.children(), None) is not None and next(child.parameters(), None) is not None:
                blocks.setdefault(type(child), []).append(f"{name}.{child_name}".removeprefix("."))
        found += [block for alike in blocks.values() if len(alike) > 1 for block in alike]
    return found


def checkpoint_blocks(model: nn.Module, names: Sequence[str] | None = None) -> list[str]:
    """Let each block keep its input alone and compute itself again in backward, in place; returns the blocks' names.

    names: modules of the model, by default its repeated_blocks. Dropout draws the same numbers again, and autocast is as
    it was in forward (torch.utils.checkpoint with use_reentrant=False). The names in the state_dict stay. In eval mode,
    and without grad, nothing changes.

    Price: about one more forward of the blocks in each step, a third of the step's arithmetic. A BatchNorm inside a
    block updates its running statistics twice for each batch.
    Raises LowVramError if there are no repeated blocks, or no such module. Source: Chen et al. 2016, Training Deep Nets
    with Sublinear Memory Cost.
    """
    if names is None:
        names = repeated_blocks(model)
        if not names:
            containers = [name for name, child in model.named_modules() if name and next(child.children(), None)]
            named = f" It has these parts: {', '.join(containers[:8])}." if containers else ""
            raise LowVramError(
                f"{type(model).__name__} has no repeated blocks that checkpointing could be applied to by itself.{named} "
                "Leave checkpointing out, or name the modules to compute twice: checkpoint_blocks(model, names=[…])."
            )
    for name in names:
        try:
            block = model.get_submodule(name)
        except AttributeError:
            raise LowVramError(f"The model has no module {name!r}. model.named_modules() lists them.") from None
        with_forward(block, "Checkpointed", _checkpointed_forward)
    return list(names)


def _checkpointed_forward(forward: Callable[..., Any]) -> Callable[..., Any]:
    def computed_twice(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if not (self.training and torch.is_grad_enabled()):
            return forward(self, *args, **kwargs)
        return checkpoint(forward, self, *args, use_reentrant=False, **kwargs)

    return computed_twice


@dataclass
class Offloaded:
    """How much was moved to the host's memory: tensors, and their bytes."""

    tensors: int = 0
    bytes: int = 0


@contextmanager
def offload(model: nn.Module, *, pin_memory: bool = False, at_least: int = 2**20) -> Iterator[Offloaded]:
    """Keep what autograd saves inside the context in the host's memory until backward asks for it.

    Tensors below at_least bytes stay where they are, and so do the model's parameters, which are on the device anyway.
    Views of one storage are moved one by one. pin_memory makes the copies faster, needs CUDA, and takes memory that the
    host cannot swap. Price: each byte crosses the bus twice in a step, about 25 GB/s on PCIe 4.0 x16.

    Raises LowVramError for pin_memory without CUDA. Source: torch.autograd.graph.save_on_cpu, which moves parameters and
    small tensors too.

    >>> model = nn.Linear(64, 64)
    >>> with offload(model, at_least=0) as moved:
    ...     loss = model(torch.ones(8, 64, requires_grad=True)).square().sum()
    >>> moved.bytes == 2 * 8 * 64 * 4  # the input, and the output that square() saves; not the weight
    True
    >>> loss.backward()
    """
    if pin_memory and not torch.cuda.is_available():
        raise LowVramError("Pinned memory needs CUDA, and PyTorch sees no GPU here. Leave pin_memory out.")
    staying = {tensor.untyped_storage().data_ptr() for tensor in model.parameters()}
    moved = Offloaded()

    def pack(tensor: Tensor) -> Any:
        if tensor.nbytes < at_least or tensor.untyped_storage().data_ptr() in staying:
            return tensor
        moved.tensors += 1
        moved.bytes += tensor.nbytes
        host = torch.empty(tensor.size(), dtype=tensor.dtype, layout=tensor.layout, pin_memory=pin_memory)
        host.copy_(tensor)  # in step with the device: a pinned copy that is not done would be read too early
        return tensor.device, host

    def unpack(packed: Any) -> Tensor:
        if isinstance(packed, Tensor):
            return packed
        device, host = packed
        return host.to(device, non_blocking=pin_memory)

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield moved


def micro_batches(batch_size: int, fits: int) -> list[int]:
    """Sizes of the fewest micro-batches that make up batch_size, none above fits, no two further apart than one.

    The losses must be weighted with these sizes: loss = loss_sum / batch_size, not the mean of means. Equal sizes keep
    the peak low: 100 with room for 64 is 50 + 50, not 64 + 36. Raises LowVramError for sizes below 1.

    >>> micro_batches(100, 64), micro_batches(10, 4), micro_batches(3, 8)
    ([50, 50], [4, 3, 3], [3])
    """
    if batch_size < 1 or fits < 1:
        raise LowVramError(
            f"A batch of {batch_size} with room for {fits} cannot be split: both must be 1 or more. If not even one "
            "example fits, accumulation cannot help; `ampkit plan` names what can."
        )
    count = -(-batch_size // fits)
    small, larger = divmod(batch_size, count)
    return [small + 1] * larger + [small] * (count - larger)


def eight_bit_adamw(params: Iterable[Tensor], lr: float = 1e-3, weight_decay: float = 1e-2) -> torch.optim.Optimizer:
    """AdamW with its two moments in 8 bits: torchao's, or bitsandbytes' where torchao is not installed.

    About 2.03 bytes of state a parameter instead of 8. Price: the moments are rounded in blocks of 256; torchao compiles
    its step (a minute at the first one), bitsandbytes needs a GPU. Tensors below 4096 elements stay FP32.
    Raises LowVramError if neither is installed, with how to install them. Source: Dettmers et al. 2021, 8-bit Optimizers
    via Block-wise Quantization.
    """
    try:
        from torchao.optim import AdamW8bit
    except ImportError:
        pass
    else:
        return AdamW8bit(params, lr=lr, weight_decay=weight_decay)
    try:
        from bitsandbytes.optim import AdamW8bit
    except ImportError:
        raise LowVramError(
            "An 8-bit AdamW needs torchao or bitsandbytes, and neither is installed here. Install one: "
            "pip install torchao, or pip install bitsandbytes (needs a GPU). Or choose adamw, which takes 8 bytes of "
            "state a parameter instead of 2."
        ) from None
    return AdamW8bit(params, lr=lr, weight_decay=weight_decay)


@dataclass(frozen=True)
class Price:
    """One training step before and after a change, measured in this process.

    kept_before, kept_after        bytes that the step made and that are alive on the model's device between forward
                                   and backward
    seconds_before, seconds_after  wall-clock time of forward and backward, the fastest of `repeats`
    """

    kept_before: int
    kept_after: int
    seconds_before: float
    seconds_after: float

    def __str__(self) -> str:
        return (
            f"kept for backward: {self.kept_before / 2**20:.2f} MiB -> {self.kept_after / 2**20:.2f} MiB "
            f"({_percent(self.kept_after, self.kept_before)}); "
            f"forward and backward: {self.seconds_before * 1e3:.1f} ms -> {self.seconds_after * 1e3:.1f} ms "
            f"({_percent(self.seconds_after, self.seconds_before)})"
        )


def _percent(after: float, before: float) -> str:
    return f"{after / before - 1:+.0%}" if before else "new"


def price(step: Callable[[nn.Module], Tensor], before: nn.Module, after: nn.Module, *, repeats: int = 3) -> Price:
    """What a change costs and saves: step(model) returns the loss, once for the model before and once for the one after.

    Both run forward and backward here and now, repeats times each, in turn. Gradients are cleared.
    """
    kept = [_kept(step, model) for model in (before, after)]
    seconds = [min(_seconds(step, model) for _ in range(repeats)) for model in (before, after)]
    return Price(*kept, *seconds)


def _kept(step: Callable[[nn.Module], Tensor], model: nn.Module) -> int:
    from ampkit.ledger.live import LiveBytes

    with LiveBytes(next(model.parameters()).device.type) as live:
        live.call("weights", [*model.parameters(), *model.buffers()])
        before = live.now().total
        loss = step(model)
        kept = live.now().total - before
    loss.backward()
    model.zero_grad()
    return kept


def _seconds(step: Callable[[nn.Module], Tensor], model: nn.Module) -> float:
    on_gpu = next(model.parameters()).is_cuda
    if on_gpu:
        torch.cuda.synchronize()
    start = time.perf_counter()
    step(model).backward()
    if on_gpu:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    model.zero_grad()
    return seconds
