"""Rehearsals: one training step after another on fake CUDA, with the bytes that are alive in each of its phases."""

from __future__ import annotations

import itertools
import logging
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ampkit.errors import AmpkitError, FakeError, LedgerError, ModelError
from ampkit.fake import FakeDevice, fake_backward, fake_cuda, fake_cuda_limits
from ampkit.ledger.kernels import GpuKernels
from ampkit.ledger.live import LiveBytes, Snapshot
from ampkit.ledger.recipe import OPTIMIZERS, Recipe
from ampkit.ledger.subject import Subject
from ampkit.lowvram import checkpoint_blocks
from ampkit.precision import Precision

__all__ = ["PHASES", "Rehearsal", "Rehearsals"]

PHASES = ("forward", "backward", "step")


@dataclass(frozen=True)
class Rehearsal:
    """What one training step keeps alive, in bytes, counted without a GPU.

    recipe      how it was trained
    peaks       phase -> what was alive at the moment of that phase when most was; from the second step on, when the
                optimizer has its state, and for several micro-batches from the second one on, when there are gradients
    kept        dtype -> bytes that autograd keeps from forward to backward, each storage once, without the parameters
    kept_casts  how much of that are low-precision copies of weights; kept_inputs: how much is the batch itself
    conv_bytes  input and output of the largest convolution, in the dtype that it computes in; 0 without one
    notes       what has to be said about the count, each a sentence
    seconds     how long the rehearsal took
    """

    recipe: Recipe
    peaks: dict[str, Snapshot]
    kept: dict[torch.dtype, int]
    kept_casts: int
    kept_inputs: int
    conv_bytes: int
    notes: tuple[str, ...]
    seconds: float

    @property
    def phase(self) -> str:
        """The phase whose peak is the highest: "forward", "backward" or "step"."""
        return max(PHASES, key=lambda phase: self.peaks[phase].blocks)

    @property
    def peak(self) -> Snapshot:
        """What is alive in that phase at the moment when most is."""
        return self.peaks[self.phase]


class Rehearsals:
    """A context in which a subject is trained on fake CUDA, one step for each recipe; the model is made once.

    It sets flags of the process (see ampkit.fake.fake_cuda), so use one thread. Raises LedgerError on entering where
    this build of PyTorch cannot have gradients on fake CUDA.

    >>> from ampkit.ledger.subject import Subject
    >>> with Rehearsals(Subject.of("mlp")) as stage:
    ...     adamw, sgd = (stage.run(Recipe(128, optimizer=name)).peak for name in ("adamw", "sgd"))
    >>> adamw.of("weights"), adamw.of("optimizer state"), sgd.of("optimizer state")  # 6634 parameters
    (26536, 53072, 0)
    """

    _fake: FakeDevice  # both from __enter__ on
    _model: nn.Module

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._stack = ExitStack()
        self._notes: list[str] = []

    def __enter__(self) -> Rehearsals:
        if not torch.backends.cuda.is_built():
            raise LedgerError(
                "This is a CPU-only build of PyTorch. A tensor on fake CUDA that requires grad aborts it, so that "
                f"nothing can be counted here:\n{fake_cuda_limits()}\nInstall a CUDA build; it needs no GPU "
                "(on Linux: pip install torch; on Windows: choose CUDA on https://pytorch.org/get-started/locally)."
            )
        self._fake = self._stack.enter_context(fake_cuda(None))
        try:
            self._model = self._made()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        del self._model
        self._stack.close()

    @property
    def parameters(self) -> int:
        """How many parameters the model has, tied ones once."""
        return sum(parameter.numel() for parameter in self._model.parameters())

    def run(self, recipe: Recipe) -> Rehearsal:
        """One training step by this recipe. Raises LedgerError with what the model did that cannot be rehearsed."""
        started = time.perf_counter()
        precision = Precision(recipe.precision)
        with _told_as_ledger_errors(self.subject.name):
            model = _held_in(self._fake.module(self._model), precision.param_dtype).train()
            if recipe.checkpointing:
                checkpoint_blocks(model)
            kept, peaks, kernels = self._step(model, recipe, precision)
        return Rehearsal(
            recipe=recipe,
            peaks=peaks,
            kept=dict(kept.bytes),
            kept_casts=kept.of["cast copies"],
            kept_inputs=kept.of["inputs"],
            conv_bytes=kernels.conv_bytes,
            notes=(*self.subject.notes, *self._notes, *kernels.notes),
            seconds=time.perf_counter() - started,
        )

    def _made(self) -> nn.Module:
        try:
            return self._fake.build(self.subject.make)
        except (FakeError, ModelError) as error:
            if isinstance(error, ModelError) and not _fake_had_no_answer(error.__cause__):
                raise
        with torch.utils._python_dispatch._disable_current_modes():
            model = self.subject.make()
        size = sum(tensor.nbytes for tensor in [*model.parameters(), *model.buffers()]) / 2**20
        self._notes.append(
            f"The model's constructor reads the values of tensors, so it was made for real: {size:.0f} MiB of this "
            "machine's memory, for a moment."
        )
        return self._fake.module(model)

    def _step(self, model: nn.Module, recipe: Recipe, precision: Precision) -> tuple[_Kept, dict, GpuKernels]:
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        if not trained:
            raise LedgerError(f"No parameter of {self.subject.name} requires grad: there is nothing to train.")
        kernels, peaks = GpuKernels(), {}
        with LiveBytes() as live:
            live.call("weights", [*model.parameters(), *model.buffers()])
            masters = [nn.Parameter(p.detach().float()) for p in trained] if recipe.master_weights else []
            live.call("master weights", masters)
            optimizer = OPTIMIZERS[recipe.optimizer](masters or trained)
            inputs, target = self._batch(recipe.micro_batch, precision)
            live.call("inputs", [*inputs] if target is None else [*inputs, target])

            for _ in range(2 if recipe.accumulate > 1 else 1):
                live.start_phase()
                kept = _Kept(live)
                with kernels, kept.hooks(), torch.autocast("cuda", precision.compute_dtype, precision.is_mixed):
                    loss = self.subject.loss(model(*inputs), target)
                kept.count()
                peaks["forward"] = live.peak
                live.start_phase()
                with kernels, _backward_by_hand(kept):  # a checkpoint computes attention again
                    fake_backward(loss, after=kept.release)
                del loss
                peaks["backward"] = live.peak

            _update(optimizer, trained, masters, live)  # the first step makes the state
            state = [v for values in optimizer.state.values() for v in values.values() if isinstance(v, Tensor)]
            live.call("optimizer state", state)
            live.start_phase()
            _update(optimizer, trained, masters, live)
            peaks["step"] = live.peak
            for phase in ("forward", "backward"):  # they ran before there was state; from the second step on there is
                peaks[phase] += live.only("optimizer state")
        return kept, peaks, kernels

    def _batch(self, size: int, precision: Precision) -> tuple[tuple[Tensor, ...], Tensor | None]:
        inputs, target = self.subject.batch(size)

        def on_device(tensor: Tensor) -> Tensor:
            lower = tensor.is_floating_point() and precision.param_dtype is not torch.float32
            return torch.empty(tensor.shape, dtype=precision.param_dtype if lower else tensor.dtype, device="cuda")

        return tuple(map(on_device, inputs)), None if target is None else torch.empty_like(target, device="cuda")


class _Kept:
    """What autograd saves: it is held here, and let go when the node that saved it has run, as the engine does."""

    def __init__(self, live: LiveBytes) -> None:
        self.live = live
        self.bytes: Counter[torch.dtype] = Counter()
        self.of: Counter[str] = Counter()
        self._held: dict[int, Tensor] = {}
        self._used: list[int] = []
        self._number = 0

    def hooks(self) -> Any:
        return torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)

    def count(self) -> None:
        """Add up the storages that are held, each once, without the parameters'."""
        seen = set()
        for tensor in self._held.values():
            storage, role = tensor.untyped_storage(), self.live.role(tensor)
            if role in (None, "weights") or storage._cdata in seen:
                continue
            seen.add(storage._cdata)
            self.bytes[tensor.dtype] += storage.nbytes()
            self.of[role] += storage.nbytes()

    def release(self, node: Any) -> None:
        for number in self._used:
            self._held.pop(number, None)
        self._used.clear()
        if hasattr(node, "variable") and node.variable.grad is not None:
            self.live.call("gradients", [node.variable.grad])

    def _pack(self, tensor: Tensor) -> int:
        self._number += 1
        self._held[self._number] = tensor
        self.live.call("saved activations", [tensor], only_from="temporaries")
        return self._number

    def _unpack(self, number: int) -> Tensor:
        self._used.append(number)
        return self._held[number]


def _update(optimizer: torch.optim.Optimizer, trained: list[Tensor], masters: list[Tensor], live: LiveBytes) -> None:
    """optimizer.step(); with master weights, on FP32 copies of the gradients, and then back to the half weights."""
    for master, parameter in zip(masters, trained, strict=False):
        if parameter.grad is not None:
            master.grad = parameter.grad.float()
            live.call("gradients", [master.grad])
    optimizer.step()
    for master, parameter in zip(masters, trained, strict=False):
        master.grad = None
        with torch.no_grad():
            parameter.copy_(master)


def _held_in(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    """The model with its floating-point parameters and buffers in dtype; model.to(dtype) cannot swap fake ones."""
    lower: dict[int, Tensor] = {}  # tied parameters stay tied
    for module in model.modules():
        named = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
        for name, tensor in named:
            if not tensor.is_floating_point() or tensor.dtype is dtype:
                continue
            if id(tensor) not in lower:
                cast = tensor.detach().to(dtype)
                is_parameter = isinstance(tensor, nn.Parameter)
                lower[id(tensor)] = nn.Parameter(cast, tensor.requires_grad) if is_parameter else cast
            setattr(module, name, lower[id(tensor)])  # RNNBase notes its new weights in __setattr__
    return model


@contextmanager
def _backward_by_hand(kept: _Kept) -> Iterator[None]:
    """What backward does to itself: reentrant checkpoints call autograd again, and others ask which pass this is."""
    task = next(_TASKS)  # one number for the whole pass, or each saved tensor would be recomputed for itself

    def again(tensors: Any, grad_tensors: Any = None, *_: Any, **__: Any) -> None:
        tensors = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
        gradients = (grad_tensors,) if isinstance(grad_tensors, Tensor) else grad_tensors or (None,) * len(tensors)
        for tensor, gradient in zip(tensors, gradients, strict=True):
            fake_backward(tensor, gradient, after=kept.release)

    before = torch._C._current_graph_task_id, torch.autograd.backward
    torch._C._current_graph_task_id, torch.autograd.backward = (lambda: task), again
    try:
        yield
    finally:
        torch._C._current_graph_task_id, torch.autograd.backward = before


_TASKS = itertools.count(2**40)


@contextmanager
def _told_as_ledger_errors(name: str) -> Iterator[None]:
    log = logging.getLogger("torch._subclasses.fake_tensor")  # it prints the traceback of what is told here in words
    silent, log.disabled = log.disabled, True
    try:
        yield
    except AmpkitError:
        raise
    except Exception as error:
        if _fake_had_no_answer(error):
            raise LedgerError(
                f"{name} asks for the value of a tensor ({_first_line(error)}), and tensors without data have none: "
                "which way it goes then, and so what it keeps, cannot be told before it runs. Give the model a switch "
                "that takes the decision out of its forward, or measure on a GPU."
            ) from error
        if "unsafe to autocast" in str(error):
            raise LedgerError(
                f"{name} computes a binary cross-entropy of probabilities, which CUDA autocast refuses, so it does not "
                "train in this precision. Use binary_cross_entropy_with_logits (nn.BCEWithLogitsLoss) without the "
                "sigmoid before it, or plan in fp32."
            ) from error
        raise LedgerError(
            f"{name} raised {type(error).__name__} in a training step on fake CUDA: {_first_line(error)}. If it trains "
            "on a GPU, this is a limit of the rehearsal; if it does not, fix the model or the --input first."
        ) from error
    finally:
        log.disabled = silent


def _fake_had_no_answer(error: BaseException | None) -> bool:
    from torch._subclasses import fake_tensor

    kinds = (fake_tensor.DataDependentOutputException, fake_tensor.DynamicOutputShapeException)
    return isinstance(error, kinds) or type(error).__name__ == "GuardOnDataDependentSymNode"


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), "").rstrip(" .") or type(error).__name__
