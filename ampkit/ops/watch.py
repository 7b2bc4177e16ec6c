"""Watching a forward pass from two places of the dispatcher: above autocast, and below it.

Above: kernels under AutocastPrivateUse1, the key that comes before every other autocast key and that no backend here
uses. They see each op that some device's autocast lists, as the model called it, and pass it on. They stay registered,
and do nothing for a thread that is not watching. Below: a TorchDispatchMode, which sees casts and kernels as they run.
"""

import functools
import itertools
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from ampkit.ops.cast_lists import DEVICE_TYPES, listed_ops, overload, policy

__all__ = ["SAME_DTYPE", "Cast", "Kernel", "TensorInfo", "Watch", "tensors_in"]

_KEY_NAME = "AutocastPrivateUse1"
_KEY = torch._C._dispatch_key_parse(_KEY_NAME)

# Ops that are composed of others and that no device's autocast lists, which one wants to see by their own name.
_NAMED = ("dropout", "max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", "instance_norm", "batch_norm")


@dataclass(frozen=True)
class TensorInfo:
    """A tensor's dtype and shape; printed like "float16[8,64]"."""

    dtype: torch.dtype
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{str(self.dtype).removeprefix('torch.')}[{','.join(map(str, self.shape))}]"

    @classmethod
    def of(cls, tensor: Tensor) -> "TensorInfo":
        """That of one tensor."""
        return cls(tensor.dtype, tuple(tensor.shape))

    @classmethod
    def all_in(cls, values: Any) -> tuple["TensorInfo", ...]:
        """Those of all tensors in nested lists, tuples, dicts, and objects with fields such as dataclasses."""
        return tuple(cls.of(tensor) for tensor in tensors_in(values))


def tensors_in(values: Any) -> list[Tensor]:
    """All tensors in nested lists, tuples, mappings of any type and dataclasses."""
    found = []
    for leaf in tree_leaves(values):
        if isinstance(leaf, Tensor):
            found.append(leaf)
        elif isinstance(leaf, Mapping):  # a type of its own, which PyTorch's tree does not know
            found += tensors_in(list(leaf.values()))
        elif hasattr(leaf, "__dataclass_fields__"):
            found += tensors_in([getattr(leaf, name) for name in leaf.__dataclass_fields__])
    return found


@dataclass(frozen=True)
class Cast:
    """A cast that autocast inserted, or one that it did not need because of the weight cache.

    argument   which of the op's tensors, by the name in its signature: "input", "weight"
    bytes      of the copy
    cache      "made" (a weight's first cast, kept until the outermost autocast ends), "hit" (it was there), "" (a cast
               of anything else, made anew each time)
    """

    argument: str
    source: torch.dtype
    target: torch.dtype
    bytes: int
    cache: str = ""


@dataclass(frozen=True)
class Kernel:
    """A kernel that ran: its name ("addmm") and the dtypes of the tensors that went in and came out."""

    name: str
    inputs: tuple[torch.dtype, ...]
    outputs: tuple[torch.dtype, ...]


class _Call:
    """An op above autocast, while it runs: what was put in, which casts and kernels have been seen since."""

    def __init__(self, name: str, category: str, module: str, arguments: dict[str, Tensor]) -> None:
        self.name, self.category, self.module, self.arguments = name, category, module, arguments  # "": not listed
        self.inputs = TensorInfo.all_in(list(arguments.values()))
        self.casts: dict[str, Cast] = {}
        self.kernels: list[Kernel] = []
        self.position = 0

    def computed_in(self) -> torch.dtype | None:
        """For an op whose inputs autocast casts, the widest of them then; for any other, what its first kernel shows."""
        if self.category in _CAST_TO:
            seen = [self.casts[name].target if name in self.casts else t.dtype for name, t in self.arguments.items()]
            numbers = [dtype for dtype in seen if _is_number(dtype)]
            return functools.reduce(torch.promote_types, numbers) if numbers else None
        return _computed_in(self.kernels[0]) if self.kernels else None

    def is_cast_target(self, dtype: torch.dtype | None, lower: torch.dtype) -> bool:
        """Whether autocast casts to this dtype for an op of this category; an op may well cast by itself besides."""
        return dtype in _CAST_TO.get(self.category, lambda lower: ())(lower)


_CAST_TO = {
    "lower precision": lambda lower: (lower,),
    "fp32": lambda lower: (torch.float32,),
    "promote": lambda lower: (torch.float32,),
}


class Watch(TorchDispatchMode):
    """A context in which every op of this thread is noted. device_type and dtype are those of autocast, which is entered
    outside of this; module_stack holds the path of the module that is running, kept up to date by the caller."""

    def __init__(self, device_type: str, dtype: torch.dtype | None) -> None:
        super().__init__()
        _register()
        self.device_type, self.dtype = device_type, dtype
        self.module_stack: list[str] = []
        self.calls: list[_Call] = []
        self.records: list[tuple[int, dict[str, Any]]] = []
        self.begun = itertools.count()
        self.others = 0
        self.last = ("", "")
        self.weights: dict[int, tuple[Tensor, torch.dtype]] = {}

    def __enter__(self) -> "Watch":
        self.outer, _watching.watch = _watching.watch, self
        self.was_excluded = torch._C._dispatch_tls_is_dispatch_key_excluded(_KEY)
        torch._C._dispatch_tls_set_dispatch_key_excluded(_KEY, False)
        self.included = torch._C._IncludeDispatchKeyGuard(_KEY)
        self.included.__enter__()
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self.included.__exit__(*error)
        torch._C._dispatch_tls_set_dispatch_key_excluded(_KEY, self.was_excluded)
        _watching.watch = self.outer

    @property
    def module(self) -> str:
        """The path of the innermost module that is running, "" outside of all."""
        return self.module_stack[-1] if self.module_stack else ""

    def where(self) -> tuple[str, str]:
        """The module and the op that ran last, for a message about an error."""
        return self.last

    def finished(self) -> list[dict[str, Any]]:
        """The fields of the records, in the order in which the ops began."""
        return [fields for _, fields in sorted(self.records, key=lambda pair: pair[0])]

    # Above autocast

    def call(self, op: OpOverload, name: str, run: Callable, args: tuple, kwargs: dict) -> Any:
        """Run one op as it stands above autocast, by run(*args, **kwargs), and note it with the casts it is given."""
        found = policy(name, self.device_type)
        if self.calls and found.category == "unlisted":  # a part of an op that has its own record
            return run(*args, **kwargs)
        on = self.dtype is not None and torch.is_autocast_enabled(self.device_type)
        listed = on and found.category != "unlisted"
        call = _Call(
            name.partition(".")[0], found.category if listed else "", self.module, _named_tensors(op, args, kwargs)
        )
        call.position = next(self.begun)
        self.last = (self.module, call.name)
        banned = ""
        self.calls.append(call)
        try:
            if listed and found.category == "banned":
                banned = found.reason
                with torch.autocast(self.device_type, enabled=False):
                    wide = [tree_map(_in_fp32, value) for value in (args, kwargs)]
                    result = run(*wide[0], **wide[1])
            else:
                result = run(*args, **kwargs)
        finally:
            self.calls.remove(call)
        if call.kernels or call.casts or banned:
            self._cache_hits(call)
            self.records.append(
                (
                    call.position,
                    {
                        "module": call.module,
                        "op": call.name,
                        "category": call.category or "unlisted",
                        "inputs": call.inputs,
                        "outputs": TensorInfo.all_in(result),
                        "compute": call.computed_in(),
                        "casts": tuple(call.casts[name] for name in call.arguments if name in call.casts),
                        "kernels": tuple(call.kernels),
                        "banned": banned,
                        "mismatch": _mismatch(call.kernels),
                    },
                )
            )
        return result

    def _cache_hits(self, call: _Call) -> None:
        """A weight in FP32 that went into a lower-precision op uncast was in the cache."""
        for name, tensor in call.arguments.items():
            held = self.weights.get(id(tensor))
            if call.category == "lower precision" and name not in call.casts and held is not None:
                call.casts[name] = Cast(name, tensor.dtype, held[1], tensor.numel() * held[1].itemsize, "hit")

    # Below autocast

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func.namespace == "prim":
            return func(*args, **kwargs)
        call = self.calls[-1] if self.calls else None
        if call is None:
            self.last = (self.module, func._schema.name.removeprefix("aten::"))
        result = func(*args, **kwargs)
        if call is not None and self._is_inserted(call, func, args, kwargs):
            return result
        came, went = tensors_in((args, kwargs)), tensors_in(result)
        if _moves_only(func, came):
            self.others += 1
            return result
        name = func._schema.name.removeprefix("aten::")
        kernel = Kernel(name, tuple(t.dtype for t in came), tuple(t.dtype for t in went))
        if call is not None:
            call.kernels.append(kernel)
            return result
        is_cast = name == "_to_copy"
        self.records.append(
            (
                next(self.begun),
                {
                    "module": self.module,
                    "op": "to" if is_cast else name,
                    "category": "cast" if is_cast else "unlisted",
                    "inputs": TensorInfo.all_in(came),
                    "outputs": TensorInfo.all_in(went),
                    "compute": None if is_cast else _computed_in(kernel),
                    "kernels": (kernel,),
                    "mismatch": _mismatch([kernel]),
                },
            )
        )
        return result

    def _is_inserted(self, call: _Call, func: OpOverload, args: tuple, kwargs: dict) -> bool:
        """Whether this is a cast of one of the op's own tensors that autocast put before it; if so, it is noted."""
        lower = torch.get_autocast_dtype(self.device_type)
        is_cast = func is torch.ops.aten._to_copy.default and call.is_cast_target(kwargs.get("dtype"), lower)
        if call.kernels or not is_cast:
            return False
        for name, tensor in call.arguments.items():
            if tensor is args[0] and name not in call.casts:
                source, target = tensor.dtype, kwargs["dtype"]
                cached = _goes_into_cache(tensor, target, lower)
                if cached:
                    self.weights[id(tensor)] = (tensor, target)
                size = tensor.numel() * target.itemsize
                call.casts[name] = Cast(name, source, target, size, "made" if cached else "")
                return True
        return False


def _goes_into_cache(tensor: Tensor, target: torch.dtype, lower: torch.dtype) -> bool:
    """cached_cast in aten/src/ATen/autocast_mode.cpp: FP32 leaves that require grad, cast to the lower precision."""
    is_weight = tensor.requires_grad and tensor.is_leaf and not tensor._is_view()
    return is_weight and tensor.dtype is torch.float32 and target is lower and torch.is_autocast_cache_enabled()


def _in_fp32(value: Any) -> Any:
    return value.float() if isinstance(value, Tensor) and value.dtype in (torch.float16, torch.bfloat16) else value


def _named_tensors(op: OpOverload, args: tuple, kwargs: dict) -> dict[str, Tensor]:
    """The tensors of a call by the names of the op's signature; those in a list as "tensors[0]", "tensors[1]", …"""
    values = {argument.name: value for argument, value in zip(op._schema.arguments, args, strict=False)} | kwargs
    found = {}
    for name, value in values.items():
        if isinstance(value, Tensor):
            found[name] = value
        elif isinstance(value, list | tuple):
            found |= {f"{name}[{index}]": item for index, item in enumerate(value) if isinstance(item, Tensor)}
    return found


def _moves_only(func: OpOverload, came: list[Tensor]) -> bool:
    """Views, copies, tensors made of no other (zeros, arange), and arithmetic on integers: no precision to speak of."""
    if func in _MOVES or not any(_is_number(tensor.dtype) for tensor in came):
        return True
    returns = func._schema.returns
    return bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)


_aten = torch.ops.aten
_MOVES = {
    _aten.clone.default,
    _aten.copy_.default,
    _aten.contiguous.default,
    _aten._unsafe_view.default,
    _aten._reshape_copy.default,
    _aten.detach.default,
    _aten.lift_fresh.default,
    _aten.empty_like.default,
    _aten.zeros_like.default,
    _aten.ones_like.default,
    _aten.full_like.default,
    _aten.new_zeros.default,
    _aten.new_empty.default,
    _aten.new_ones.default,
    _aten.new_full.default,
    _aten.fill_.Scalar,
    _aten.zero_.default,
    _aten.bernoulli_.float,
    _aten.uniform_.default,
    _aten.normal_.default,
}


# Kernels that refuse tensors of different dtypes, while their fake counterparts let them pass; tested on real tensors.
SAME_DTYPE = frozenset(
    {"mm", "addmm", "mv", "addmv", "convolution", "grid_sampler_2d", "_prelu_kernel", "linalg_cross"}
    | {"index_add", "index_add_", "index_copy", "index_copy_", "index_put", "index_put_", "binary_cross_entropy"}
)


def _mismatch(kernels: list[Kernel]) -> str:
    """Why a device would refuse one of these, though its fake counterpart ran; "" if none would."""
    for kernel in kernels:
        dtypes = list(dict.fromkeys(dtype for dtype in kernel.inputs if _is_number(dtype)))
        if kernel.name in SAME_DTYPE and len(dtypes) > 1:
            return f"{kernel.name} is given {' and '.join(map(str, dtypes))} at once, and needs one dtype."
    return ""


def _computed_in(kernel: Kernel) -> torch.dtype | None:
    """The wider of what it reads first and what it writes first: the arithmetic's dtype, as far as dtypes show it.

    Batch norm reads FP16 beside FP32 statistics and writes FP16; a sum with dtype=FP32 reads FP16 and writes FP32.
    """
    read = next((dtype for dtype in kernel.inputs if _is_number(dtype)), None)
    written = kernel.outputs[0] if kernel.outputs and _is_number(kernel.outputs[0]) else None
    if read is None or written is None:
        return read or written
    return torch.promote_types(read, written)


def _is_number(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


# The kernels above autocast


class _Watching(threading.local):
    watch: Watch | None = None


_watching = _Watching()


@functools.cache
def _register() -> tuple[torch.library.Library, ...]:
    libraries = []
    if not torch._C._dispatch_has_backend_fallback(_KEY):
        everything_else = torch.library.Library("_", "IMPL", _KEY_NAME)
        everything_else.fallback(torch.library.fallthrough_kernel)
        libraries.append(everything_else)
    names = {name for device_type in DEVICE_TYPES for name in listed_ops(device_type)} | set(_NAMED)
    aten = torch.library.Library("aten", "IMPL", _KEY_NAME)
    for name in sorted(names):
        if "::" not in name:
            aten.impl(name, _above(overload(name), name))
    return *libraries, aten


def _above(op: OpOverload, name: str) -> Callable:
    composite = torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "CompositeImplicitAutograd")

    def run(*args, **kwargs):
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(_KEY)):
            return op(*args, **kwargs)

    def kernel(*args, **kwargs):
        watch = _watching.watch
        if watch is None:
            return run(*args, **kwargs)
        # what is composed of others and not listed on this device is seen through: its parts may be listed
        seen_through = composite and policy(name, watch.device_type).category == "unlisted"
        return watch.call(op, name, op.decompose if seen_through else run, args, kwargs)

    return kernel
