"""What a model computes in: every op of one forward pass under autocast, as the dispatcher really runs it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)

from ampkit.errors import DeviceError, OpsError
from ampkit.fake import fake_cuda
from ampkit.ops.watch import Cast, Kernel, TensorInfo, Watch
from ampkit.precision import Precision

__all__ = ["Inspection", "ModuleSummary", "OpRecord", "Stop", "inspect"]


@dataclass(frozen=True)
class OpRecord:
    """One op of the forward pass, in the order of execution.

    index       0, 1, 2, …
    module      the path of the module that called it, "" for the model itself
    op          its name as autocast knows it ("linear"), or, for one that autocast knows on no device, the kernel's
    category    one of ampkit.ops.CATEGORIES; "cast" for a conversion that the model itself asks for
    inputs      the tensors that it was called with, before autocast
    outputs     the tensors that came out
    compute     the dtype that it computed in; None where no floating-point number was computed
    casts       the casts that autocast inserted for it
    kernels     the kernels that ran for it, without views and casts, with the dtypes that they saw
    banned      PyTorch's words, where autocast refuses the op: on the device the model stops here with that error, and
                the inspection goes on as if the op stood in an FP32 island
    mismatch    why the op raises on a device though it ran here without data: its tensors differ in dtype
    """

    index: int
    module: str
    op: str
    category: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    compute: torch.dtype | None
    casts: tuple[Cast, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    banned: str = ""
    mismatch: str = ""


@dataclass(frozen=True)
class Stop:
    """Why the forward pass could not be followed to its end: a module's path, an op, what it means, PyTorch's words."""

    module: str
    op: str
    meaning: str
    words: str

    def __str__(self) -> str:
        place = f"in {self.module}" if self.module else "in the model itself"
        return f"Stopped {place}, at {self.op or 'its Python code'}: {self.meaning} PyTorch says: {self.words}"


@dataclass(frozen=True)
class ModuleSummary:
    """What one module did by itself and in its children: the dtypes that it computed in, with the number of ops; casts.

    path             "" for the whole model
    type_name        the class of the module
    ops              how many ops ran
    compute          dtype -> number of ops that computed in it
    outputs          the tensors that its last call returned
    cast_bytes       bytes that autocast wrote for casts inside it
    weight_cast_bytes  those of them that are copies of weights, kept until the outermost autocast ends
    """

    path: str
    type_name: str
    ops: int
    compute: dict[torch.dtype, int]
    outputs: tuple[TensorInfo, ...]
    cast_bytes: int
    weight_cast_bytes: int


@dataclass(frozen=True)
class Inspection:
    """One forward pass under autocast: its records, and whether it was followed to its end.

    device_type, dtype   of autocast
    on                   "fake cuda", "fake cpu" (no value was computed), "cuda" or "cpu" (run for real)
    records              OpRecord of every op that computes in floating point
    others               how many views, copies and ops on integers ran besides
    outputs              what the model returned: the tensors in it
    stopped              None, or why the rest of the model is not known
    notes                what to know before trusting the rest
    """

    device_type: str
    dtype: torch.dtype | None
    on: str
    records: tuple[OpRecord, ...]
    others: int
    outputs: tuple[TensorInfo, ...]
    stopped: Stop | None = None
    notes: tuple[str, ...] = ()
    module_types: dict[str, str] = field(default_factory=dict, repr=False)
    module_outputs: dict[str, tuple[TensorInfo, ...]] = field(default_factory=dict, repr=False)

    @property
    def casts(self) -> tuple[Cast, ...]:
        """All casts that autocast inserted, and the uses of the weight cache, in order."""
        return tuple(cast for record in self.records for cast in record.casts)

    @property
    def cast_bytes(self) -> int:
        """Bytes that autocast's casts wrote in this forward pass."""
        return sum(cast.bytes for cast in self.casts if cast.cache != "hit")

    @property
    def cached_weight_bytes(self) -> int:
        """Bytes of weight copies in the weight cache at the end of the forward pass."""
        return sum(cast.bytes for cast in self.casts if cast.cache == "made")

    @property
    def banned(self) -> tuple[OpRecord, ...]:
        """The ops that autocast refuses."""
        return tuple(record for record in self.records if record.banned)

    @property
    def mismatched(self) -> tuple[OpRecord, ...]:
        """The ops that a device refuses because their tensors differ in dtype."""
        return tuple(record for record in self.records if record.mismatch)

    def compute_counts(self) -> dict[torch.dtype, int]:
        """dtype -> how many ops computed in it, the most frequent first."""
        return _counts(self.records)

    def modules(self) -> tuple[ModuleSummary, ...]:
        """A summary of each module that ran an op, itself or in its children, in the model's own order."""
        return tuple(self._summary(path) for path in self.module_types if any(self._within(path)))

    def module(self, path: str) -> ModuleSummary:
        """The summary of the module of that path. Raises OpsError if it ran nothing."""
        if path not in self.module_types or not any(self._within(path)):
            raise OpsError(
                f"No op ran in a module {path!r}. Those that did: {', '.join(s.path for s in self.modules())}."
            )
        return self._summary(path)

    def _within(self, path: str) -> Iterator[OpRecord]:
        inside = f"{path}." if path else ""
        return (record for record in self.records if record.module == path or record.module.startswith(inside))

    def _summary(self, path: str) -> ModuleSummary:
        records = tuple(self._within(path))
        casts = [cast for record in records for cast in record.casts]
        return ModuleSummary(
            path=path,
            type_name=self.module_types[path],
            ops=len(records),
            compute=_counts(records),
            outputs=self.module_outputs.get(path, ()),
            cast_bytes=sum(cast.bytes for cast in casts if cast.cache != "hit"),
            weight_cast_bytes=sum(cast.bytes for cast in casts if cast.cache == "made"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON; dtypes are words like "float16", shapes are lists."""
        return {
            "torch": torch.__version__,
            "device_type": self.device_type,
            "dtype": _word(self.dtype),
            "on": self.on,
            "ops": [_record_dict(record) for record in self.records],
            "modules": [
                {
                    "path": summary.path,
                    "type": summary.type_name,
                    "ops": summary.ops,
                    "compute": {_word(dtype): count for dtype, count in summary.compute.items()},
                    "outputs": [_info_dict(info) for info in summary.outputs],
                    "cast_bytes": summary.cast_bytes,
                    "weight_cast_bytes": summary.weight_cast_bytes,
                }
                for summary in self.modules()
            ],
            "outputs": [_info_dict(info) for info in self.outputs],
            "cast_bytes": self.cast_bytes,
            "cached_weight_bytes": self.cached_weight_bytes,
            "others": self.others,
            "stopped": None if self.stopped is None else str(self.stopped),
            "notes": list(self.notes),
        }


def inspect(
    model: nn.Module | Callable[[], nn.Module],
    *inputs: Any,
    device_type: str = "cuda",
    dtype: torch.dtype | None = torch.float16,
    real: bool = False,
) -> Inspection:
    """What every op and module of model(*inputs) computes in, under autocast of device_type with dtype.

    model is a model, or a function that makes one, which then takes no memory. inputs may be tensors and nested lists,
    tuples and dicts of them, on any device, "meta" too. The model's own mode (train or eval) and the grad mode of the
    caller are used. The model is not changed, except that real=True runs it: statistics of BatchNorm are updated then,
    as in any forward pass.

    real=False runs a copy without data (ampkit.fake): no GPU is needed, no value is computed, no memory allocated.
    Where the model needs a value (`if x.sum() > 0`, `x[mask]`) the inspection stops and says so. real=True runs the
    model itself, on the device that it is on.

    Raises DeviceError for real=True on a device that is not there or has no such arithmetic, OpsError for a model that
    lies on another device, FakeError for a function that cannot make its model without data.

    >>> model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8))
    >>> for record in inspect(model, torch.zeros(2, 8)).records:
    ...     print(record.module, record.op, record.category, record.compute, record.outputs[0])
    0 linear lower precision torch.float16 float16[2,8]
    1 layer_norm fp32 torch.float32 float32[2,8]
    """
    if real:
        model = model if isinstance(model, nn.Module) else model()
        return _run(model, inputs, device_type, dtype, _real_autocast(model, device_type, dtype), device_type, [])
    with fake_cuda(dtype, device_type) as fake:
        notes = [] if fake.requires_grad else [_NO_GRAD]
        copied = fake.module(model) if isinstance(model, nn.Module) else fake.build(model)
        return _run(copied, fake.tensors(inputs), device_type, dtype, nullcontext(), f"fake {device_type}", notes)


_NO_GRAD = (
    "This build of PyTorch has no fake CUDA tensors that require grad, so that the weights are frozen here and are cast at "
    "each use; with weights that are trained, the first cast of each is kept for the later uses."
)


def _run(
    model: nn.Module,
    inputs: Any,
    device_type: str,
    dtype: torch.dtype | None,
    autocast: Any,
    on: str,
    notes: list[str],
) -> Inspection:
    watch = Watch(device_type, dtype)
    places = _Places(model, watch)
    stopped: Stop | None = None
    outputs: tuple[TensorInfo, ...] = ()
    with autocast, places.followed(), watch:
        try:
            result = model(*inputs)
        except Exception as error:
            stopped = _stop(error, watch, on)
        else:
            outputs = TensorInfo.all_in(result)
    records = tuple(OpRecord(index, **made) for index, made in enumerate(watch.finished()))
    if on == "fake cuda":
        notes = [*notes, *_differs_on_a_gpu(model, records)]
    return Inspection(
        device_type=device_type,
        dtype=dtype,
        on=on,
        records=records,
        others=watch.others,
        outputs=outputs,
        stopped=stopped,
        notes=tuple(notes),
        module_types=places.types,
        module_outputs=places.outputs,
    )


def _differs_on_a_gpu(model: nn.Module, records: tuple[OpRecord, ...]) -> Iterator[str]:
    if any(isinstance(module, nn.RNNBase) for module in model.modules()):
        yield (
            "Recurrent layers run op by op here, and cast their weights at each time step; on a GPU cuDNN computes each "
            "layer as one op (_cudnn_rnn), with one cast, in the same dtype."
        )
    if any(record.op == "scaled_dot_product_attention" for record in records) and not torch.cuda.is_available():
        yield (
            "Which kernel computes scaled_dot_product_attention (flash, efficient, cuDNN, math) is chosen on the GPU; the "
            "kernels recorded here are those of the choice without one. The dtypes in and out are the same."
        )


def _real_autocast(model: nn.Module, device_type: str, dtype: torch.dtype | None) -> torch.autocast:
    if device_type not in ("cuda", "cpu"):
        raise DeviceError(f"A model is run for real on 'cuda' and 'cpu' here, and not on {device_type!r}.")
    if device_type == "cuda" and not torch.cuda.is_available():
        raise DeviceError(
            "real=True runs the model, and PyTorch sees no CUDA GPU here. Leave it out: the casts are the same without data."
        )
    Precision(_PRECISIONS[dtype]).check(device_type)
    elsewhere = {tensor.device.type for tensor in [*model.parameters(), *model.buffers()]} - {device_type}
    if elsewhere:
        raise OpsError(
            f"The model is on {', '.join(sorted(elsewhere))}, and is to be run on {device_type}. "
            f"Move it there first: model.to({device_type!r}), and its inputs too."
        )
    return torch.autocast(device_type, dtype=dtype, enabled=dtype is not None)


_PRECISIONS = {torch.float16: "fp16-mixed", torch.bfloat16: "bf16-mixed", None: "fp32"}


class _Places:
    """Which module is running. Global hooks, because a hook of a module switches fast paths off inside it."""

    def __init__(self, model: nn.Module, watch: Watch) -> None:
        self.watch = watch
        self.paths = {module: path for path, module in model.named_modules()}
        self.types = {path: type(module).__name__ for path, module in model.named_modules()}
        self.outputs: dict[str, tuple[TensorInfo, ...]] = {}

    @contextmanager
    def followed(self) -> Iterator[None]:
        hooks = torch.nn.modules.module
        with ExitStack() as stack:
            stack.callback(hooks.register_module_forward_pre_hook(self._enter).remove)
            stack.callback(hooks.register_module_forward_hook(self._leave, always_call=True).remove)
            yield

    def _enter(self, module: nn.Module, args: Any) -> None:
        if module in self.paths:
            self.watch.module_stack.append(self.paths[module])

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        if module in self.paths and self.watch.module_stack:
            path = self.watch.module_stack.pop()
            if output is not None:
                self.outputs[path] = TensorInfo.all_in(output)


def _stop(error: Exception, watch: Watch, on: str) -> Stop:
    words = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no message'}"
    module, op = watch.where()
    fake = on.startswith("fake")
    if fake and isinstance(error, DataDependentOutputException | DynamicOutputShapeException):
        meaning = (
            "what comes next depends on a value (if x > 0, .item(), x[mask]), and nothing has one here. The records end "
            "before it. On a machine with the device, real=True (--real) follows this input's way."
        )
    elif fake and "not linked with support for cuda" in words:
        meaning = (
            "this is a CPU-only build of PyTorch, which cannot follow fake CUDA tensors through this op. The records end "
            "before it. A CUDA build of PyTorch can, and needs no GPU for that."
        )
    elif fake and (isinstance(error, UnsupportedOperatorException | NotImplementedError) or _needs_device(words)):
        meaning = "PyTorch cannot run this op without data and without the device. The records end before it."
    else:
        meaning = "the model raises this here."
        if fake:
            meaning += " It would on the device too, unless the words are about fake or meta tensors."
    return Stop(module, op, meaning, words)


def _needs_device(words: str) -> bool:
    return any(sign in words for sign in ("NVIDIA driver", "CUDA error", "CUDA enabled"))


def _counts(records: tuple[OpRecord, ...]) -> dict[torch.dtype, int]:
    found: dict[torch.dtype, int] = {}
    for record in records:
        if record.compute is not None:
            found[record.compute] = found.get(record.compute, 0) + 1
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _word(dtype: torch.dtype | None) -> str | None:
    return None if dtype is None else str(dtype).removeprefix("torch.")


def _info_dict(info: TensorInfo) -> dict[str, Any]:
    return {"dtype": _word(info.dtype), "shape": list(info.shape)}


def _record_dict(record: OpRecord) -> dict[str, Any]:
    return {
        "index": record.index,
        "module": record.module,
        "op": record.op,
        "category": record.category,
        "inputs": [_info_dict(info) for info in record.inputs],
        "outputs": [_info_dict(info) for info in record.outputs],
        "compute": _word(record.compute),
        "casts": [
            {
                "argument": cast.argument,
                "from": _word(cast.source),
                "to": _word(cast.target),
                "bytes": cast.bytes,
                "weight_cache": cast.cache,
            }
            for cast in record.casts
        ],
        "kernels": [kernel.name for kernel in record.kernels],
        "banned": record.banned or None,
        "mismatch": record.mismatch or None,
    }
