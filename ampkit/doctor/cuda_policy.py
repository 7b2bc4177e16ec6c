"""CUDA's autocast policy on CPU tensors: real FP16 arithmetic without a GPU, with the casts that a GPU would see.

CPU autocast is no stand-in for CUDA autocast: it leaves softmax, layer_norm, exp, pow or sum in FP16, where CUDA computes
them in FP32, so that it finds failures that a GPU does not have. Here every op of PyTorch's AutocastCUDA list is caught
at the same place of the dispatcher, under a dispatch key that no backend uses, and its CPU arguments get the casts that
the installed PyTorch gives to CUDA tensors of the same dtypes. Which casts these are is asked of PyTorch's own AutocastCUDA
kernel with fake CUDA tensors, once for each op and combination of dtypes; there is no list of ops in this file.

What stays different from a GPU: the kernels themselves. Both accumulate FP16 products in FP32, and in another order.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

__all__ = ["Casts", "below_autocast", "casts_on_cuda", "cuda_autocast", "cuda_policy"]

_KEY_NAME = "AutocastIPU"  # an autocast key without a backend, a kernel or a fallback in any build of PyTorch
_KEY = torch._C.DispatchKey.AutocastIPU
_CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
_KEY_AND_CPU = torch._C.DispatchKeySet(_KEY) | _CPU
_ALL = _KEY_AND_CPU | torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA)

# On CUDA these run in cuDNN, as one op whose autocast kernel casts input, state and weights; CPU tensors never reach it.
_RNNS = tuple(f"aten::{name}.{kind}" for name in ("lstm", "gru", "rnn_tanh", "rnn_relu") for kind in ("input", "data"))


class _State(threading.local):
    dtypes: tuple[torch.dtype, ...] = ()  # of the cuda_autocast regions that this thread is in
    composite = False  # inside an op that only CPU autocast lists, and CUDA's sees through
    cache: dict[int, tuple[Any, Tensor]] | None = None


_state = _State()


@contextmanager
def cuda_policy() -> Iterator[None]:
    """Make cuda_autocast possible in this thread. Put it around forward and backward, as custom_bwd enters autocast too.

    Registers the kernels on first use (they stay, and do nothing for a thread that is not in here), and lets
    torch.autocast("cuda", …) inside the model mean this policy instead of warning that there is no CUDA.
    """
    _register()
    original_cast = torch.amp.autocast_mode._cast

    def cast(value, device_type, dtype):  # custom_fwd(device_type="cuda", cast_inputs=…) looks for CUDA tensors
        return original_cast(value, "cpu" if device_type == "cuda" else device_type, dtype)

    patches = (
        (torch.cuda.amp.common, "amp_definitely_not_available", lambda: False),
        (torch.cuda, "is_bf16_supported", lambda *args, **kwargs: True),
        (torch.amp.autocast_mode, "_cast", cast),
    )
    before = [getattr(module, name) for module, name, _ in patches]
    excluded = torch._C._dispatch_tls_is_dispatch_key_excluded(_KEY)
    torch._C._dispatch_tls_set_dispatch_key_excluded(_KEY, False)
    try:
        for module, name, value in patches:
            setattr(module, name, value)
        with torch._C._IncludeDispatchKeyGuard(_KEY):
            yield
    finally:
        torch._C._dispatch_tls_set_dispatch_key_excluded(_KEY, excluded)
        for (module, name, _), value in zip(patches, before, strict=True):
            setattr(module, name, value)


@contextmanager
def cuda_autocast(dtype: torch.dtype) -> Iterator[None]:
    """torch.autocast("cuda", dtype) for CPU tensors; only inside cuda_policy().

    torch.autocast(…, enabled=False) inside it is an FP32 island, for the device type "cuda" and for "cpu".
    """
    devices = ("cuda", "cpu")
    before = [(torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)) for device in devices]
    torch.autocast_increment_nesting()
    _state.dtypes += (dtype,)
    if _state.cache is None:
        _state.cache = {}
    try:
        for device in devices:
            torch.set_autocast_enabled(device, True)
            torch.set_autocast_dtype(device, dtype)
        yield
    finally:
        _state.dtypes = _state.dtypes[:-1]
        if not _state.dtypes:
            _state.cache = None
        if torch.autocast_decrement_nesting() == 0:
            torch.clear_autocast_cache()
        for device, (enabled, old) in zip(devices, before, strict=True):
            torch.set_autocast_enabled(device, enabled)
            torch.set_autocast_dtype(device, old)


def below_autocast() -> AbstractContextManager[None]:
    """A context in which no autocast casts: neither this policy, nor PyTorch's own of CUDA and the CPU."""
    return torch._C._ExcludeDispatchKeyGuard(_ALL)


# The kernels


@cache
def _register() -> tuple[torch.library.Library, ...]:
    """Kernels for every op that CUDA's or the CPU's autocast lists, and a fall through for all others."""
    others = torch.library.Library("_", "IMPL", _KEY_NAME)
    others.fallback(torch.library.fallthrough_kernel)
    listed = torch.library.Library("aten", "IMPL", _KEY_NAME)
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        if not name.startswith("aten::"):
            continue
        if has(name, "AutocastCUDA"):
            listed.impl(name.removeprefix("aten::"), _cuda_kernel(_overload(name)))
        elif name in _RNNS:
            listed.impl(name.removeprefix("aten::"), _rnn_kernel(_overload(name)))
        elif has(name, "AutocastCPU"):
            listed.impl(name.removeprefix("aten::"), _cpu_kernel(_overload(name)))
    return others, listed


def _overload(name: str) -> torch._ops.OpOverload:
    packet, _, overload = name.removeprefix("aten::").partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def _lower() -> torch.dtype | None:
    """The dtype that autocast casts to here; None where it is off.

    The device types "cuda" and "cpu" both mean this policy, as the tensors of a GPU are on the CPU here: a model may say
    either, and checkpointing enters again what it saw of both. In a region one of them switched off is an island.
    """
    cuda, cpu = torch.is_autocast_enabled("cuda"), torch.is_autocast_enabled("cpu") or _state.composite
    if not (cuda and cpu if _state.dtypes else cuda or cpu):
        return None
    dtypes = [torch.get_autocast_dtype(device) for device, on in (("cuda", cuda), ("cpu", cpu)) if on]
    outer = _state.dtypes[-1] if _state.dtypes else None
    return next((dtype for dtype in dtypes if dtype is not outer), outer)  # an inner region changes one of them


def _cuda_kernel(op) -> Callable:
    def kernel(*args, **kwargs):
        lower = _lower()
        with torch._C._ExcludeDispatchKeyGuard(_KEY_AND_CPU):
            if lower is None:
                return op(*args, **kwargs)
            leaves, tree = tree_flatten((args, kwargs))
            casts = casts_on_cuda(op, leaves, tree, lower)
            if casts.error:
                raise RuntimeError(casts.error)
            leaves = [_cast(leaf, to) for leaf, to in zip(leaves, casts.dtypes, strict=True)]
            args, kwargs = tree_unflatten(leaves, tree)
            if casts.result is None:
                return op(*args, **kwargs)
            return _with_result_dtype(op, args, kwargs, casts.result)

    return kernel


def _rnn_kernel(op) -> Callable:
    def kernel(*args, **kwargs):
        lower = _lower()
        with torch._C._ExcludeDispatchKeyGuard(_KEY_AND_CPU):
            if lower is not None:
                leaves, tree = tree_flatten((args, kwargs))
                args, kwargs = tree_unflatten([_cast(x, lower if _eligible(x) else None) for x in leaves], tree)
            return op(*args, **kwargs)

    return kernel


def _cpu_kernel(op) -> Callable:
    """For an op that only CPU autocast lists: keep that from casting, and see what it consists of, as CUDA does."""
    composite = torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "CompositeImplicitAutograd")
    call, excluded = (op.decompose, _CPU) if composite else (op, _KEY_AND_CPU)

    def kernel(*args, **kwargs):
        before, _state.composite = _state.composite, _lower() is not None
        try:
            with torch._C._ExcludeDispatchKeyGuard(excluded):
                return call(*args, **kwargs)
        finally:
            _state.composite = before

    return kernel


def _eligible(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.dtype is not torch.float64


def _cast(value: Any, to: torch.dtype | None) -> Any:
    """The value in that dtype. The cast of an FP32 weight is made once a region, as autocast's cache does.

    That is no mere saving: the gradients of all uses of the weight then add up in the lower precision.
    """
    if to is None or value.dtype is to:
        return value
    weight = value.requires_grad and value.is_leaf and not value._is_view() and value.dtype is torch.float32
    if not (weight and _state.cache is not None and torch.is_autocast_cache_enabled()):
        return value.to(to)
    held, cast = _state.cache.get(id(value), (None, None))
    if held is None or held() is not value or cast.dtype is not to:
        cast = value.to(to)
        _state.cache[id(value)] = (weakref.ref(value), cast)
    return cast


# norm is redispatched to another overload, which has a dtype; older versions have one for named tensors too
_WITH_DTYPE = {
    getattr(torch.ops.aten.norm, name): getattr(torch.ops.aten.norm, wider)
    for name, wider in (
        ("Scalar", "ScalarOpt_dtype"),
        ("ScalarOpt_dim", "ScalarOpt_dim_dtype"),
        ("names_ScalarOpt_dim", "names_ScalarOpt_dim_dtype"),
    )
    if name in torch.ops.aten.norm.overloads()
}


def _with_result_dtype(op, args, kwargs, dtype):
    if op in _WITH_DTYPE:
        # these overloads have no defaults: p = 2 and keepdim = False are norm's own
        values = {argument.name: argument.default_value for argument in op._schema.arguments}
        values.update(zip(values, args, strict=False))
        return _WITH_DTYPE[op](*{**values, **kwargs}.values(), dtype=dtype)
    return op(*args, **{**kwargs, "dtype": dtype})


# What CUDA would cast


class Casts:
    """dtypes: what each leaf of the arguments is cast to (None: left alone); result: the dtype asked of the op; error."""

    def __init__(self, dtypes: tuple, result: torch.dtype | None = None, error: str | None = None) -> None:
        self.dtypes, self.result, self.error = dtypes, result, error


class _Enough(Exception):
    """The op itself has been reached: all casts are known."""


class _Watch(TorchDispatchMode):
    """Notes the casts of the given tensors, and stops at the first op that is no cast."""

    def __init__(self, watched: list[Tensor]) -> None:
        super().__init__()
        self.watched = watched
        self.casts: dict[int, torch.dtype] = {}  # by position among the watched

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.ops.aten._to_copy.default:
            for index, tensor in enumerate(self.watched):
                if tensor is args[0]:
                    self.casts[index] = kwargs["dtype"]
                    return func(*args, **kwargs)
        if func is torch.ops.prim.device.default:  # a question, and no op
            return func(*args, **kwargs)
        raise _Enough


_known: dict[tuple, Casts] = {}


def casts_on_cuda(op: torch._ops.OpOverload, leaves: list[Any], tree: TreeSpec, lower: torch.dtype) -> Casts:
    """What autocast("cuda", lower) casts for this call, asked of the installed PyTorch with fake CUDA tensors.

    leaves and tree are the flattened (args, kwargs) of the call, whose tensors are on the CPU.
    """
    signature = tuple(leaf.dtype if isinstance(leaf, Tensor) else type(leaf) for leaf in leaves)
    key = (op, lower, signature, str(tree))
    if key not in _known:
        _known[key] = _ask(op, leaves, tree, lower)
    return _known[key]


def _ask(op, leaves, tree, lower) -> Casts:
    before = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    with _disable_current_modes(), torch.no_grad(), FakeTensorMode(allow_non_fake_inputs=True):
        fakes = [
            torch.empty(leaf.shape, dtype=leaf.dtype, device="cuda") if isinstance(leaf, Tensor) else leaf
            for leaf in leaves
        ]
        watched = [fake for fake in fakes if isinstance(fake, Tensor)]
        args, kwargs = tree_unflatten(fakes, tree)
        watch = _Watch(watched)
        torch.set_autocast_enabled("cuda", True)
        torch.set_autocast_dtype("cuda", lower)
        try:
            with watch, torch._C._ExcludeDispatchKeyGuard(_KEY_AND_CPU):
                op(*args, **kwargs)
        except _Enough:
            pass
        except Exception as error:
            if "unsafe to autocast" in str(error):
                return Casts((None,) * len(leaves), error=str(error))
            # a refusal of the op itself, after its casts: on real tensors it will speak for itself
        finally:
            torch.set_autocast_enabled("cuda", before[0])
            torch.set_autocast_dtype("cuda", before[1])
    positions = [index for index, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    dtypes: list = [None] * len(leaves)
    for number, to in watch.casts.items():
        dtypes[positions[number]] = to
    return Casts(tuple(dtypes), result=_result_asked(op, leaves))


def _result_asked(op, leaves) -> torch.dtype | None:
    """FP32 for the ops that autocast does not feed FP32 but asks for an FP32 result, unless the caller asked already.

    In AutocastCUDA's list these are the ops with an argument `dtype`, and norm; the tests prove it op by op.
    """
    if op not in _WITH_DTYPE and all(argument.name != "dtype" for argument in op._schema.arguments):
        return None
    if any(isinstance(leaf, torch.dtype) for leaf in leaves) or not _eligible(leaves[0]):
        return None
    return torch.float32
