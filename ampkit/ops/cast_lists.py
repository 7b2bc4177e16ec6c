"""The cast lists of the installed PyTorch, found by asking its autocast kernels instead of a table.

Autocast is a set of kernels under dispatch keys of their own (AutocastCUDA, AutocastCPU, …). Which ops have one, the
dispatcher says. What a kernel does is seen by calling it with fake tensors in FP32, in the lower precision and in a mix
of both, under a mode that sees each cast and stops at the op itself: the casts come first, so that the shapes need not
make sense. No device is needed for that, so the lists of MPS and XPU are answered on any machine.
"""

import difflib
import functools
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload, OpOverloadPacket
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves

from ampkit.errors import OpsError

__all__ = ["CATEGORIES", "DEVICE_TYPES", "Policy", "listed_ops", "overload", "policies", "policy"]

DEVICE_TYPES = {"cuda": "AutocastCUDA", "cpu": "AutocastCPU", "mps": "AutocastMPS", "xpu": "AutocastXPU"}

# category -> what autocast does with an op of it
CATEGORIES = {
    "lower precision": "its FP32 inputs are cast to autocast's dtype, and it computes in that",
    "fp32": "its inputs of lower precision are cast to FP32, and it computes in FP32",
    "fp32 result": "its inputs are left alone, and it is asked for an FP32 result, unless the caller asks for a dtype",
    "promote": "where inputs differ, all are cast to the widest of their dtypes",
    "banned": "it raises: in FP16 it would overflow or underflow, and casting its inputs to FP32 is too late",
    "unlisted": "autocast does not know it: it computes in what its inputs are",
    "not probed": "autocast knows it, and what it does there could not be found out",
}


@dataclass(frozen=True)
class Policy:
    """What autocast of a device type does with an op.

    op           as the dispatcher names it, without "aten::": "linear", "softmax.int"
    device_type  "cuda", "cpu", "mps" or "xpu"
    category     one of CATEGORIES
    reason       for "not probed": why; for "banned": PyTorch's own words; for "unlisted": whether PyTorch composes it of
                 other ops, of which the listed ones are cast
    """

    op: str
    device_type: str
    category: str
    reason: str = ""

    def __str__(self) -> str:
        said = f"{self.op} on {self.device_type}: {self.category}; {CATEGORIES[self.category]}."
        return f"{said} {self.reason}".rstrip()

    def compute_dtype(self, dtypes: tuple[torch.dtype, ...], lower: torch.dtype) -> torch.dtype | None:
        """The dtype that the op computes in for floating-point inputs of these dtypes, under autocast to `lower`.

        None for a banned op. An op that is not listed promotes as PyTorch's arithmetic does; some raise instead.

        >>> policy("matmul").compute_dtype((torch.float32, torch.float32), torch.float16)
        torch.float16
        """
        eligible = [dtype for dtype in dtypes if dtype.is_floating_point and dtype is not torch.float64]
        widest = functools.reduce(torch.promote_types, dtypes)
        if self.category == "banned":
            return None
        if self.category == "not probed":
            raise OpsError(f"What {self.op} computes in on {self.device_type} is not known. {self.reason}")
        if self.category == "unlisted" or len(eligible) < len(dtypes):
            return widest
        return {"lower precision": lower, "promote": widest}.get(self.category, torch.float32)


def policy(op: str | OpOverload | OpOverloadPacket, device_type: str = "cuda") -> Policy:
    """The policy of one op: "softmax", "softmax.int", torch.ops.aten.softmax or torch.ops.aten.softmax.int.

    A name without overload means the overload that autocast lists, if there is one.
    Raises OpsError for an op that does not exist, with the closest names, and for a device type without autocast lists.

    >>> policy("linear").category, policy("softmax").category, policy("embedding").category
    ('lower precision', 'fp32 result', 'unlisted')
    >>> policy("softmax", "cpu").category
    'unlisted'
    """
    key = _key(device_type)
    name = _name(op)
    overloads = _overloads_of(name)
    if not overloads:
        close = difflib.get_close_matches(name, {full.partition(".")[0] for full in _aten_names()}, n=3)
        hint = f" Did you mean {' or '.join(close)}?" if close else ""
        raise OpsError(f"PyTorch's dispatcher has no op {name!r}.{hint} Names are those of torch.ops.aten.")
    listed = [overload for overload in overloads if _has_kernel(overload, key)]
    if listed:
        return _probed(listed[0], device_type)
    full = overloads[0]
    composite = torch._C._dispatch_has_kernel_for_dispatch_key(_qualified(full), "CompositeImplicitAutograd")
    reason = "PyTorch composes it of other ops, and casts those of them that are listed." if composite else ""
    return Policy(full, device_type, "unlisted", reason)


def policies(device_type: str = "cuda") -> dict[str, tuple[str, ...]]:
    """All ops with an autocast kernel for device_type, by category: {"lower precision": ("_convolution", …), …}.

    Every category but "unlisted" is a key, "not probed" too. Takes about a second the first time.

    >>> policies("cuda")["banned"]
    ('binary_cross_entropy',)
    >>> "cat" in policies("cpu")["promote"], "cat" in policies("cuda")["promote"]
    (True, False)
    """
    found: dict[str, list[str]] = {category: [] for category in CATEGORIES if category != "unlisted"}
    for op in listed_ops(device_type):
        found[_probed(op, device_type).category].append(op)
    return {category: tuple(ops) for category, ops in found.items()}


def listed_ops(device_type: str = "cuda") -> tuple[str, ...]:
    """The names of all ops that have an autocast kernel for device_type, sorted. Other libraries' ops keep their "ns::"."""
    names = torch._C._dispatch_get_registrations_for_dispatch_key(_key(device_type))
    return tuple(sorted({name.removeprefix("aten::") for name in names}))


def _key(device_type: str) -> str:
    if device_type not in DEVICE_TYPES:
        raise OpsError(
            f"There are no autocast lists for {device_type!r} here. Choose one of: {', '.join(DEVICE_TYPES)}."
        )
    return DEVICE_TYPES[device_type]


def _name(op: str | OpOverload | OpOverloadPacket) -> str:
    if isinstance(op, OpOverload):
        return op.name().removeprefix("aten::")  # the default overload has no suffix
    if isinstance(op, OpOverloadPacket):
        return op._qualified_op_name.removeprefix("aten::")
    return op.removeprefix("aten::").removesuffix(".default")


def _qualified(name: str) -> str:
    return name if "::" in name else f"aten::{name}"


@functools.cache
def _aten_names() -> tuple[str, ...]:
    names = torch._C._dispatch_get_all_op_names()
    return tuple(sorted(name.removeprefix("aten::") for name in names if name.startswith("aten::")))


def _overloads_of(name: str) -> list[str]:
    """The overload of that name, or all of them; those with an `out` argument, which autocast never lists, last."""
    names = _aten_names() if "::" not in name else torch._C._dispatch_get_all_op_names()
    if name in names and "." in name:
        return [name]
    found = [full for full in names if full.partition(".")[0] == name]
    return sorted(
        found,
        key=lambda full: (_takes_names(full), "out" in full.partition(".")[2], not full.endswith(".Tensor"), full),
    )


def _takes_names(name: str) -> bool:
    """Whether an overload takes dimensions by name; PyTorch 2.11 lists those too, 2.13 no longer."""
    return any(word in name.partition(".")[2].lower() for word in ("dimname", "names"))


def _has_kernel(name: str, key: str) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(_qualified(name), key)


def overload(name: str) -> OpOverload:
    """The callable of a full name: "softmax.int" -> torch.ops.aten.softmax.int."""
    namespace, _, rest = _qualified(name).partition("::")
    packet, _, kind = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace), packet), kind or "default")


# Probing


class _Reached(Exception):
    """What autocast does has been seen: a cast, or the op itself without one."""


class _FirstCast(TorchDispatchMode):
    """Stops at the first cast of one of the given tensors, and at any op before that unless asked to go to the end."""

    def __init__(self, watched: list[Tensor], to_the_end: bool) -> None:
        super().__init__()
        self.watched, self.to_the_end, self.dtype = watched, to_the_end, None

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.ops.prim.device.default:  # a question, and no op
            return func(*args, **kwargs)
        if func is torch.ops.aten._to_copy.default and any(tensor is args[0] for tensor in self.watched):
            self.dtype = kwargs["dtype"]
            raise _Reached
        if not self.to_the_end:
            raise _Reached
        return func(*args, **kwargs)


@functools.cache
def _probed(name: str, device_type: str) -> Policy:
    op, lower = overload(name), torch.float16
    with _asking(device_type, lower):
        mixed = None
        for pattern in ("odd fp32", "even fp32", "first fp32", "fp32"):
            mixed = mixed or _attempt(op, device_type, pattern, lower)[0]
        if mixed is lower:
            return Policy(name, device_type, "lower precision")
        cast, result, words = _attempt(op, device_type, "lower", lower)
        if "unsafe to autocast" in words:
            return Policy(name, device_type, "banned", words)
        if cast is torch.float32:
            return Policy(name, device_type, "fp32")
        if mixed is torch.float32:
            return Policy(name, device_type, "promote")
    with _asking(device_type, None):
        _, plain, _ = _attempt(op, device_type, "lower", lower)
    if plain is lower and result is torch.float32:
        return Policy(name, device_type, "fp32 result")
    without_names = [each for each in _overloads_of(name.partition(".")[0]) if not _takes_names(each)]
    listed = [each for each in without_names if _has_kernel(each, DEVICE_TYPES[device_type])]
    if _takes_names(name) and listed:  # no fake tensor has names, so that the op raises before it comes to a result
        return Policy(name, device_type, _probed(listed[0], device_type).category, f"Asked of {listed[0]}.")
    reason = f"No cast was seen. The op said: {words}" if words else "No cast was seen, and the result is not FP32."
    return Policy(name, device_type, "not probed", reason)


# which of the tensors, counted from 0, are FP32; the others are of the lower precision
_PATTERNS = {
    "fp32": lambda number: True,
    "lower": lambda number: False,
    "even fp32": lambda number: number % 2 == 0,
    "odd fp32": lambda number: number % 2 == 1,
    "first fp32": lambda number: number == 0,  # _cudnn_rnn packs FP32 weights anew, for which it needs a GPU
}


@contextmanager
def _asking(device_type: str, dtype: torch.dtype | None) -> Iterator[None]:
    """Autocast of device_type as plain state: torch.autocast itself warns or raises where the device is not there."""
    before = torch.is_autocast_enabled(device_type), torch.get_autocast_dtype(device_type)
    log = logging.getLogger("torch._subclasses.fake_tensor")  # writes a traceback where shapes make no sense
    log_was_disabled, log.disabled = log.disabled, True
    above = torch._C.DispatchKeySet(
        torch._C._dispatch_key_parse("AutocastPrivateUse1")
    )  # where ampkit.ops.watch listens
    unheard = torch._C._ExcludeDispatchKeyGuard(above)
    with unheard, _disable_current_modes(), torch.no_grad(), FakeTensorMode(allow_non_fake_inputs=True):
        try:
            torch.set_autocast_enabled(device_type, dtype is not None)
            if dtype is not None:
                torch.set_autocast_dtype(device_type, dtype)
            yield
        finally:
            torch.set_autocast_enabled(device_type, before[0])
            torch.set_autocast_dtype(device_type, before[1])
            log.disabled = log_was_disabled


def _attempt(
    op: OpOverload, device_type: str, pattern: str, lower: torch.dtype
) -> tuple[torch.dtype | None, torch.dtype | None, str]:
    """What the first cast was to, the dtype of the result where the op came to one, the words of an error."""
    made: list[Tensor] = []

    def tensor() -> Tensor:
        dtype = torch.float32 if _PATTERNS[pattern](len(made)) else lower
        made.append(torch.empty(2, 2, dtype=dtype, device=device_type))
        return made[-1]

    arguments = [argument for argument in op._schema.arguments if _is_needed(argument)]
    args = [_value(argument, tensor) for argument in arguments if not argument.kwarg_only]
    kwargs = {argument.name: _value(argument, tensor) for argument in arguments if argument.kwarg_only}
    watch = _FirstCast(made, to_the_end=pattern == "lower")
    try:
        with watch:
            result = op(*args, **kwargs)
    except _Reached:
        return watch.dtype, None, ""
    except Exception as error:
        return watch.dtype, None, str(error).splitlines()[0]
    results = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
    return watch.dtype, results[0].dtype if results else None, ""


def _length(argument: torch._C.Argument) -> int | None:
    return getattr(argument, "N", None)  # of "int[2]": 2; PyTorch's type stubs leave it out


def _is_needed(argument: torch._C.Argument) -> bool:
    no_dim = argument.name == "dim" and argument.default_value is None  # cross warns without
    return not argument.has_default_value() or (no_dim and str(argument.type) == "Optional[int]")


def _value(argument: torch._C.Argument, tensor: Any) -> Any:
    """A value of the argument's type. It only has to get through the op's signature: see the top of this file."""
    kind = str(argument.type)
    if argument.name == "weight_stride0":  # of _cudnn_rnn: the number of weights of a layer
        return 4
    if kind == "Tensor":
        return tensor()
    if kind == "List[Tensor]":
        return [tensor() for _ in range(_length(argument) or 4)]
    if kind == "List[Optional[Tensor]]":
        return [torch.zeros(2, dtype=torch.int64, device="cpu")]
    if kind == "Optional[int]":
        return 0
    if kind.startswith("Optional"):
        return None
    if kind.startswith("List[int]"):
        return [0] if argument.name == "dim" else [1] * (_length(argument) or 1)
    if kind == "str":
        return "ij,jk" if argument.name == "equation" else "a"
    if kind == "List[str]":
        return ["a"]
    return {"int": 0, "float": 1.0, "number": 1, "bool": False}[kind]
