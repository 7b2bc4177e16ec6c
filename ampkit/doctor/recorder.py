"""Recorder: watches every op of a forward and a backward pass, and keeps numbers about its tensors, never the tensors.

It stands below autocast and autograd (a TorchDispatchMode), so that it sees the casts, and the ops that backward is made
of. Each op that puts out FP16 or BF16 is computed a second time on FP32 copies of its inputs: what that result holds
and the real one does not, this op has lost. Where an inf or nan comes in, the record points to the record that made it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_map

from ampkit.doctor.cuda_policy import below_autocast

__all__ = ["LOW", "Op", "Recorder", "Stats", "stats"]

LOW = (torch.float16, torch.bfloat16)

# Not computed a second time: they hand a workspace of their own dtype from forward to backward, and an FP32 call with an
# FP16 workspace aborts the process.
OPAQUE = ("rnn", "cudnn", "miopen", "mkldnn", "attention_backward", "_fused")


@dataclass(frozen=True)
class Stats:
    """The numbers of one floating-point tensor. largest and smallest are of the finite non-zero magnitudes (0: none)."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    largest: float
    smallest: float
    low: float  # the smallest and the largest finite value, with their signs
    high: float
    zeros: int
    nans: int
    infs: int
    minus_infs: int

    @property
    def numel(self) -> int:
        """How many elements the tensor has."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def bad(self) -> int:
        """How many elements are inf or nan."""
        return self.nans + self.infs + self.minus_infs

    def words(self) -> str:
        """`FP16 (2, 3), |x| up to 1.5e+03` and what is bad in it."""
        name = {torch.float16: "FP16", torch.bfloat16: "BF16", torch.float32: "FP32"}.get(self.dtype, str(self.dtype))
        parts = [f"{name} {self.shape}", f"|x| up to {self.largest:.4g}"]
        for count, kind in ((self.nans, "nan"), (self.infs, "inf"), (self.minus_infs, "-inf")):
            if count:
                parts.append(f"{count} of {self.numel} {kind}")
        return ", ".join(parts)


@torch.no_grad()
def stats(tensor: Tensor) -> Stats:
    """The Stats of a floating-point or complex tensor of any device; one pass over it, and a sync on a GPU."""
    tensor = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    values = tensor.detach()
    wide = values if values.dtype is torch.float64 else values.float()
    finite = wide.isfinite()
    inside = torch.where(finite, wide, 0)
    magnitudes = inside.abs()
    some = values.numel() > 0
    smallest = torch.where(magnitudes > 0, magnitudes, torch.inf).min().item() if some else 0.0
    bad = some and not bool(finite.all())
    return Stats(
        dtype=tensor.dtype,
        shape=tuple(tensor.shape),
        largest=magnitudes.max().item() if some else 0.0,
        smallest=0.0 if smallest == float("inf") else smallest,
        low=inside.min().item() if some else 0.0,
        high=inside.max().item() if some else 0.0,
        zeros=int((wide == 0).sum()),
        nans=int(wide.isnan().sum()) if bad else 0,
        infs=int((wide == torch.inf).sum()) if bad else 0,
        minus_infs=int((wide == -torch.inf).sum()) if bad else 0,
    )


@dataclass(eq=False)
class Op:
    """One op that ran, or a tensor that was there before (name "input", "parameter", "buffer"; label says which).

    phase    "forward" or "backward"
    module   path of the innermost module, "" for the model itself, "loss" outside of it
    inputs   Stats of its floating-point inputs; sources are the Ops that made them (None: not known)
    output   Stats of what it put out; fp32 is of the same op on FP32 copies (None: not computed)
    lost     share of the elements that are not 0 in FP32 and are 0 here
    scalars  numbers among the arguments
    node     in backward: the name of the autograd node, as in "SqrtBackward0"
    """

    index: int
    name: str
    phase: str
    module: str
    output: Stats
    inputs: tuple[Stats, ...] = ()
    sources: tuple[Op | None, ...] = ()
    fp32: Stats | None = None
    lost: float = 0.0
    scalars: tuple[float, ...] = ()
    node: str | None = None
    label: str = ""
    same_input: bool = False  # both factors are one tensor: a square
    rounded: bool = False  # the CPU has no FP16 kernel: computed in FP32, then rounded
    parents: tuple[Op, ...] = field(default=(), repr=False)  # those that made the inf or nan that came in
    absorbed: tuple[Op, ...] = field(default=(), repr=False)  # the same where no inf or nan came out
    vanished: Op | None = field(default=None, repr=False)  # the op whose underflow a zero in here comes from

    @property
    def dtype(self) -> torch.dtype:
        """What it computed in: the lowest dtype of inputs and output."""
        seen = [one.dtype for one in (*self.inputs, self.output)]
        return next((dtype for dtype in seen if dtype in LOW), seen[0])

    @property
    def out_of_range(self) -> bool:
        """The inputs were finite, FP32 would hold the result, and this dtype does not."""
        return bool(self.output.bad and not self.parents and self.fp32 is not None and not self.fp32.bad)

    def ancestry(self) -> list[Op]:
        """From the op that made the first bad value to this one.

        A nan is followed to the nan that it comes from, else to an inf, and to a -inf last: softmax makes good zeros of
        a mask's -inf, and a nan of an inf beside it.
        """
        chain = [self]
        kinds = ("nans", "infs", "minus_infs")
        wanted = next((kind for kind in kinds if getattr(self.output, kind)), "nans")
        while chain[0].parents:
            parents = chain[0].parents
            order = (wanted, *(kind for kind in kinds if kind != wanted))
            wanted = next(kind for kind in order if any(getattr(parent.output, kind) for parent in parents))
            having = [parent for parent in parents if getattr(parent.output, wanted)]
            chain.insert(0, min(having, key=lambda parent: parent.index))
        return chain


class Recorder(TorchDispatchMode):
    """Records every op while it is entered, with the module that the op belongs to.

    Used as `with recorder, recorder.modules(model): …`; then `ops`, `seeded` and `rounded` are there to read. The
    real results are passed through untouched. Nothing is replaced, with one exception that is noted in `rounded`: an op
    that has no FP16 kernel on the CPU is computed in FP32 and its result rounded to FP16.
    """

    def __init__(self, *, compare: bool = True) -> None:
        super().__init__()
        self.compare = compare  # compute each FP16 or BF16 op in FP32 too
        self.ops: list[Op] = []
        self.seeded = False  # an op drew random numbers
        self.rounded: set[str] = set()
        self.phase = "forward"
        self.failed: tuple[str, str] | None = None  # op and module of an exception
        self._stack: list[str] = []
        self._made: dict[int, Op] = {}  # by storage: the op that wrote it last
        self._nodes: dict[int, str] = {}  # sequence number of an autograd node -> module of its forward op

    # Where

    @contextmanager
    def modules(self, model: nn.Module) -> Iterator[None]:
        """Know which of the model's modules is running."""
        handles = []
        for name, module in model.named_modules():

            def enter(module, args, name=name):
                self._stack.append(name)

            def leave(module, args, output):
                self._stack.pop()

            handles += [module.register_forward_pre_hook(enter), module.register_forward_hook(leave)]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    @property
    def module(self) -> str:
        """The path of the innermost module that runs, "loss" outside of the model."""
        return self._stack[-1] if self._stack else "loss"

    def there(self, name: str, label: str, tensor: Tensor) -> Op:
        """A tensor that no recorded op made: a parameter, a buffer, an input."""
        with _disable_current_modes():
            seen = stats(tensor)
        op = Op(len(self.ops), name, "forward", label.rpartition(".")[0], output=seen, label=label)
        self.ops.append(op)
        self._made[_storage(tensor)] = op
        return op

    def maker(self, tensor: Tensor) -> Op | None:
        """The op that wrote the tensor's memory last."""
        return self._made.get(_storage(tensor))

    # What

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        with below_autocast():  # where this op stands: what is computed here is cast no more
            return self._record(func, args, kwargs or {})

    def _record(self, func, args, kwargs):
        leaves = tree_flatten((args, kwargs))[0]
        tensors = [leaf for leaf in leaves if _numbers(leaf)]
        node, module = self._place()
        before = _clones_of_mutated(func, args)
        sources = tuple(self.maker(tensor) for tensor in tensors)
        made = zip(tensors, sources, strict=True)
        parents = tuple(op for x, op in made if op is not None and op.output.bad and not bool(x.isfinite().all()))
        inputs = tuple(before.get(id(tensor)) or _lazy(tensor, op) for tensor, op in zip(tensors, sources, strict=True))
        try:
            out, rounded = _run(func, args, kwargs)
        except Exception:
            self.failed = (_name(func), module)
            raise
        self.seeded |= torch.Tag.nondeterministic_seeded in func.tags and not _without_dropout(func, leaves)
        outputs = [leaf for leaf in tree_flatten(out)[0] if _numbers(leaf)]
        if not outputs or _is_view(func):
            return out
        if "empty" in func.name():  # memory that nothing was written to yet: its numbers are nobody's
            for output in outputs:
                self._made.pop(_storage(output), None)
            return out
        shadow = self._in_fp32(func, args, kwargs, before) if self.compare else None
        for place, output in enumerate(outputs):
            mine = None if shadow is None else shadow[place]
            op = Op(
                index=len(self.ops),
                name=_name(func),
                phase=self.phase,
                module=module,
                inputs=tuple(one() for one in inputs),
                sources=sources,
                output=stats(output),
                fp32=None if mine is None else stats(mine),
                lost=0.0 if mine is None else _lost(output, mine),
                scalars=tuple(float(leaf) for leaf in leaves if type(leaf) in (int, float)),
                node=node,
                same_input=len(tensors) > 1 and tensors[0] is tensors[1],
                rounded=rounded,
                parents=parents,
            )
            if not op.output.bad:
                op.parents, op.absorbed = (), parents
            op.vanished = op if op.lost else _inherited(op)
            if rounded:
                self.rounded.add(op.name)
            self.ops.append(op)
            self._made[_storage(output)] = op
        return out

    def _place(self) -> tuple[str | None, str]:
        node = torch._C._current_autograd_node()
        if node is not None:
            return node.name(), self._nodes.get(node._sequence_nr(), "loss")
        # autograd has already made the node of the op that is about to run: it has the number before the next one
        if torch.is_grad_enabled():
            self._nodes.setdefault(torch.autograd._get_sequence_nr() - 1, self.module)
        return None, self.module

    def _in_fp32(self, func, args, kwargs, before) -> list[Tensor] | None:
        """The op's outputs for FP32 copies of its inputs; None where that is no comparison."""
        if torch.Tag.nondeterministic_seeded in func.tags and not _without_dropout(
            func, tree_flatten((args, kwargs))[0]
        ):
            return None
        if any(part in func.name() for part in OPAQUE):
            return None
        out_is_low = any(_numbers(x) and x.dtype in LOW for x in tree_flatten((args, kwargs))[0]) or any(
            leaf in LOW for leaf in tree_flatten(kwargs)[0] if isinstance(leaf, torch.dtype)
        )
        if not out_is_low:
            return None

        def wide(leaf):
            if isinstance(leaf, torch.dtype):
                return torch.float32 if leaf in LOW else leaf
            if not isinstance(leaf, Tensor):
                return leaf
            copy = before[id(leaf)].tensor if id(leaf) in before else leaf
            if copy.dtype in LOW:
                return copy.float()
            return copy.clone() if id(leaf) in before else copy

        try:
            with _disable_current_modes(), torch.no_grad():
                out = func(*tree_map(wide, args), **tree_map(wide, kwargs))
        except Exception:  # an op that has no FP32 form, as _softmax(…, half_to_float=True)
            return None
        return [leaf for leaf in tree_flatten(out)[0] if _numbers(leaf)]


class _lazy:
    """The Stats of an input, computed when an op turns out to be recorded, if its maker's output is not all of it."""

    def __init__(self, tensor: Tensor, maker: Op | None = None) -> None:
        self.tensor = tensor
        self.known = None
        if maker is not None and maker.output.dtype is tensor.dtype and maker.output.shape == tuple(tensor.shape):
            self.known = maker.output

    def __call__(self) -> Stats:
        return stats(self.tensor) if self.known is None else self.known


def _numbers(value: Any) -> bool:
    if not isinstance(value, Tensor) or value.layout is not torch.strided:
        return False
    return value.is_floating_point() or value.is_complex()


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata


def _name(func) -> str:
    return func.name().removeprefix("aten::").partition(".")[0]


def _clones_of_mutated(func, args) -> dict[int, _lazy]:
    """What an in-place op is about to write over."""
    if not func._schema.is_mutable:
        return {}
    written = [
        value
        for argument, value in zip(func._schema.arguments, args, strict=False)
        if argument.alias_info is not None and argument.alias_info.is_write and _numbers(value)
    ]
    return {id(value): _lazy(value.clone()) for value in written}


def _is_view(func) -> bool:
    """The output is memory of an input that nothing was written to."""
    schema = func._schema
    return (
        not schema.is_mutable
        and any(out.alias_info is not None for out in schema.returns)
        and "lift" not in func.name()
    )


def _without_dropout(func, leaves) -> bool:
    return "attention" in func.name() and not any(type(leaf) is float and 0 < leaf < 1 for leaf in leaves)


def _run(func, args, kwargs):
    try:
        return func(*args, **kwargs), False
    except (NotImplementedError, RuntimeError) as error:
        if "not implemented for 'Half'" not in str(error) or func._schema.is_mutable:
            raise
        wide = tree_map(lambda x: x.float() if _numbers(x) and x.dtype is torch.float16 else x, (args, kwargs))
        narrow = func(*wide[0], **wide[1])
        return tree_map(lambda x: x.half() if _numbers(x) and x.dtype is torch.float32 else x, narrow), True


def _lost(output: Tensor, fp32: Tensor) -> float:
    if output.shape != fp32.shape:
        return 0.0
    there = fp32 != 0
    count = int(there.sum())
    return int((there & (output == 0)).sum()) / count if count else 0.0


def _inherited(op: Op) -> Op | None:
    if not op.output.zeros:
        return None
    return next((source.vanished for source in op.sources if source is not None and source.vanished), None)
