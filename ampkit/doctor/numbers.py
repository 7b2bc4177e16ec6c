"""examine: run one forward and backward pass under a precision, and find the first op that makes an inf, a nan or a zero."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_flatten_with_path, tree_map

from ampkit.doctor.causes import DIVISIONS, WHYS, explain, place, short, where
from ampkit.doctor.cuda_policy import cuda_autocast, cuda_policy
from ampkit.doctor.findings import Diagnosis, Finding
from ampkit.doctor.recorder import LOW, Op, Recorder, stats
from ampkit.errors import DoctorError
from ampkit.precision import Precision, default_device

__all__ = ["Examination", "examine"]

INIT_SCALE = 2.0**16  # GradScaler's own
SMALLEST_SCALE = 2.0**-24  # further down no scale makes sense
RUNNING = ("running_mean", "running_var")
MOST_LOST = 0.5  # of a weight's gradient; a few per cent are lost in healthy runs
NEGLIGIBLE = 2.0**-24  # of the largest gradient: FP32 would not see it beside that one


@dataclass(frozen=True)
class Examination(Diagnosis):
    """The Diagnosis of one forward and backward pass.

    precision        its name
    scale            what the loss was multiplied by in the backward pass that the records are of (1 without a scaler)
    suggested_scale  largest power of two that leaves the largest gradient seen a factor of 8 of room; None if unknown
    lost             share of each weight's gradient that is 0 here and not in FP32, by the weight's name
    ops              the records of all ops, in order: see ampkit.doctor.recorder.Op
    """

    precision: str = ""
    scale: float = 1.0
    suggested_scale: float | None = None
    lost: dict[str, float] | None = None
    ops: tuple[Op, ...] = ()

    def modules(self) -> list[dict[str, Any]]:
        """A row for each module that computed, in order: the largest magnitudes forward and backward, and in which dtype."""
        rows: dict[str, dict[str, Any]] = {}
        for op in self.ops:
            if op.label:
                continue
            row = rows.setdefault(op.module, {"module": op.module, "forward": 0.0, "backward": 0.0, "dtype": op.dtype})
            row[op.phase] = max(row[op.phase], op.output.largest)
            if op.dtype in LOW:
                row["dtype"] = op.dtype
        return list(rows.values())

    def to_dict(self) -> dict[str, Any]:
        """The Diagnosis' plain data, with precision, scales, what was lost, and a row for each module."""
        rows = [row | {"dtype": str(row["dtype"])} for row in self.modules()]
        own = {"precision": self.precision, "scale": self.scale, "suggested_scale": self.suggested_scale}
        return super().to_dict() | own | {"lost": self.lost or {}, "modules": rows}


def examine(
    model: nn.Module,
    inputs: Tensor | tuple | dict[str, Any],
    targets: Any = None,
    loss_fn: Callable[..., Tensor] | None = None,
    *,
    precision: str | Precision = "fp16-mixed",
    device: str | torch.device | None = None,
    scale: float | None = None,
    policy: str = "cuda",
    name: str | None = None,
) -> Examination:
    """Find the first op and module that makes an inf, a nan or lost gradients, and which of the known causes it is.

    model      in the mode (train or eval) in which it is to be examined. It is left as it was: weights, gradients,
               buffers and the random state too.
    inputs     a tensor, the arguments of forward as a tuple, or its keyword arguments as a dict
    targets    given to loss_fn(output, targets); without targets loss_fn(output) is called
    loss_fn    runs under autocast, as in the loops of ampkit. Without one, a model that returns a single number
               returns its loss; else only the forward pass is examined, and a note says so.
    precision  "fp16-mixed" as a rule; every name of Precision is possible
    device     "cuda" or "cpu", by default the first of them that is there; the model is copied if it is elsewhere
    scale      what the loss is multiplied by; by default 65536 for fp16-mixed (GradScaler's first) and 1 otherwise.
               scale=1 is FP16 without a scaler.
    policy     whose autocast a CPU follows. "cuda" (default): CUDA's casts on real FP16 numbers, see
               ampkit.doctor.cuda_policy; "cpu": PyTorch's own CPU autocast, for a model that is trained on CPUs.
    name       what the text calls the model, by default its class

    A scale that is too large is no finding: the GradScaler skips such steps and halves. What FP16 would have to
    do for ever, or what training would never recover from, is one. Raises DeviceError for what the device cannot do,
    DoctorError for a model that fails in FP32 as well.

    >>> class Norm(nn.Module):
    ...     def forward(self, x):
    ...         return x * torch.rsqrt((x * x).mean(-1, keepdim=True))
    >>> found = examine(nn.Sequential(nn.Linear(4, 4), Norm()), torch.full((2, 4), 1000.0), device="cpu")
    >>> [(finding.cause, finding.module, finding.op) for finding in found.findings]
    [('square_overflow', '1', 'mul')]
    """
    precision = Precision(str(precision))
    precision.check(device)
    device = torch.device(default_device() if device is None else device)
    if policy not in ("cuda", "cpu"):
        raise DoctorError(f"policy is 'cuda' or 'cpu', the autocast whose casts a CPU follows, and not {policy!r}.")
    if scale is None:
        scale = INIT_SCALE if precision.scales_loss else 1.0
    if not (scale > 0 and math.isfinite(scale)):
        raise DoctorError(f"The scale is a finite number greater than 0, and not {scale!r}.")
    run = _Run(_placed(model, device, precision), device, precision, scale, policy, loss_fn, name)
    with _unchanged(run.model, device), precision.float32_math(device):
        return run.examine(_to(inputs, device), _to(targets, device))


@dataclass
class _Pass:
    """One recorded forward pass and what came out."""

    recorder: Recorder
    loss: Tensor | None = None
    output: Any = None
    error: Exception | None = None
    failed: tuple[str | None, str] = (None, "")
    weights: dict[str, nn.Parameter] = field(default_factory=dict)
    gradients: dict[str, Tensor] = field(default_factory=dict)  # after backward of the loss at scale 1


class _Run:
    """One examination of one model on one device."""

    def __init__(self, model, device, precision, scale, policy, loss_fn, name) -> None:
        self.model, self.device, self.precision = model, device, precision
        self.name = name or type(model).__name__
        self.scale, self.policy, self.loss_fn = scale, policy, loss_fn
        self.simulated = device.type == "cpu" and precision.is_mixed and policy == "cuda"
        self.weights = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.used = 1.0  # the scale of the backward pass that the records are of
        self.notes: list[str] = []
        self.lost: dict[str, float] = {}

    def examine(self, inputs, targets) -> Examination:
        findings: list[Finding] = self._before()
        with cuda_policy() if self.simulated else nullcontext():
            with self._fresh():
                fp32 = self._in_fp32(inputs, targets)
            with self._fresh():
                seen = self._forward(self.model, inputs, targets, self.precision)
                if seen.error is not None:
                    findings += self._raised(seen, fp32)
                else:
                    findings += self._forward_findings(seen, fp32)
                places = {finding.where for finding in findings}
                findings += [finding for finding in self._poisoned(seen) if finding.where not in places]
                self.notes = self._notes(seen)
                if seen.loss is not None and not findings:
                    findings += self._backward(seen, seen.loss, fp32)
        return self._result(seen, findings)

    # Forward

    def _in_fp32(self, inputs, targets) -> _Pass:
        """The same pass in FP32, backward too: what is wrong there as well is no matter of precision."""
        model = self.model
        if self.precision.param_dtype is not torch.float32:
            model = copy.deepcopy(model).float()
        inputs = tree_map(lambda x: x.float() if _is_low(x) else x, inputs)
        done = self._forward(model, inputs, targets, Precision("fp32"))
        if done.loss is not None and done.loss.requires_grad:
            self._clear(done)
            _one(done.loss).backward()
            gradients = {name: p.grad for name, p in done.weights.items() if p.grad is not None}
            done.gradients = {name: grad.detach().to_dense().clone() for name, grad in gradients.items()}
        return done

    def _forward(self, model, inputs, targets, precision: Precision) -> _Pass:
        recorder = Recorder()
        weights = {name: p for name, p in model.named_parameters() if p.requires_grad}
        done = _Pass(recorder, weights=weights)
        if precision.param_dtype is not torch.float32:
            inputs = tree_map(lambda x: x.to(precision.param_dtype) if _is_float(x) else x, inputs)
        tensors = [("parameter", name, p) for name, p in model.named_parameters()]
        tensors += [("buffer", name, b) for name, b in model.named_buffers() if b.is_floating_point()]
        tensors += [("input", name, x) for name, x in _named(inputs, "inputs") + _named(targets, "targets")]
        for kind, name, tensor in tensors:
            recorder.there(kind, name, tensor)
        args, kwargs = _arguments(inputs)
        try:
            # torch.compile would fuse the ops that are to be looked at
            eager = torch.compiler.set_stance("force_eager")
            with eager, recorder, recorder.modules(model), self._autocast(precision):
                done.output = model(*args, **kwargs)
                done.loss = self._loss(done.output, targets)
        except Exception as error:
            done.error = error
            done.failed = recorder.failed or (None, recorder.module)
        if not (done.loss is None or _is_float(done.loss)):
            kind = type(done.loss).__name__
            raise DoctorError(f"loss_fn must return the loss, a floating-point tensor, and returned {kind}.")
        return done

    def _autocast(self, precision: Precision):
        if self.simulated and precision.is_mixed:
            return cuda_autocast(precision.compute_dtype)
        return precision.autocast(self.device.type)

    def _loss(self, output, targets) -> Tensor | None:
        if self.loss_fn is not None:
            return self.loss_fn(output) if targets is None else self.loss_fn(output, targets)
        alone = isinstance(output, Tensor) and output.numel() == 1 and output.requires_grad
        return output if alone else None

    def _forward_findings(self, seen: _Pass, fp32: _Pass) -> list[Finding]:
        """What is wrong with the loss, or without one with the output."""
        ends = [seen.loss] if seen.loss is not None else _tensors(seen.output)
        for number, end in enumerate(ends):
            op = seen.recorder.maker(end)
            if op is None or bool(end.isfinite().all()):
                continue
            only_masked = seen.loss is None and not end.isnan().any() and not (end == torch.inf).any()
            if only_masked and not any(step.out_of_range for step in op.ancestry()):
                continue  # -inf on purpose, as in logits that are masked
            return [explain(op.ancestry(), fp32_is_fine=self._fine(fp32, number))]
        return self._swallowed(seen) or self._vanished(seen)

    def _fine(self, fp32: _Pass, number: int) -> bool | None:
        if self.precision.name == "fp32" or fp32.error is not None:
            return None
        ends = [fp32.loss] if fp32.loss is not None else _tensors(fp32.output)
        return bool(ends[number].isfinite().all()) if number < len(ends) else None

    def _swallowed(self, seen: _Pass) -> list[Finding]:
        """An overflow that a division made a 0 of: finite, and wrong. Softmax, tanh or a clamp may take an inf rightly."""
        for op in seen.recorder.ops:
            divides = op.name in DIVISIONS or (op.name == "pow" and any(number < 0 for number in op.scalars))
            chains = [parent.ancestry() for parent in op.absorbed] if divides and op.phase == "forward" else []
            for chain in chains:
                if chain[0].out_of_range and chain[0].output.infs:
                    return [explain([*chain, op], fp32_is_fine=None)]
        return []

    def _vanished(self, seen: _Pass) -> list[Finding]:
        """Activations of which nothing is left."""
        for op in seen.recorder.ops:
            if op.fp32 is None or op.lost < 1 or op.module == "loss":
                continue
            if op.output.numel >= 16 and op.output.zeros == op.output.numel:
                why = WHYS["activation_underflow"]
                what = (
                    f"All {op.output.numel} results are 0 in {short(op.output.dtype)}. In FP32 the same op gives |x| up to "
                    f"{op.fp32.largest:.4g}."
                )
                evidence = {"largest_in_fp32": op.fp32.largest, "lost": 1.0}
                return [_finding(why, where(op), what, op, evidence)]
        return []

    def _raised(self, seen: _Pass, fp32: _Pass) -> list[Finding]:
        """An exception that this precision alone raises."""
        error, (op, module) = seen.error, seen.failed
        if fp32.error is not None:
            raise DoctorError(
                f"The model does not run in FP32 either: {type(fp32.error).__name__} in {place(fp32.failed[1])}: "
                f"{fp32.error}. That is no matter of precision. Make one forward pass and loss run, then ask again."
            ) from fp32.error
        text = str(error)
        cause = "raises_in_this_precision"
        if "unsafe to autocast" in text:
            cause, op = "bce_banned", "binary_cross_entropy"
        elif "without overflow" in text:
            cause = "mask_overflow"
        elif "cuFFT" in text or "Unsupported dtype" in text or (op or "").startswith("_fft"):
            cause = "fft_half"
        elif any(words in text for words in ("same dtype", "dtypes match", "scalar type", "expected dtype", "dtype")):
            cause = "dtype_mismatch"
        first = text.strip().splitlines()[0][:160]
        what = f"PyTorch raises {type(error).__name__}: {first.rstrip('.')}. The same model and inputs run in FP32."
        at = f"forward, {op} in {place(module)}" if op else f"forward, in {place(module)}"
        why = WHYS[cause]
        dtype = str(self.precision.compute_dtype)
        return [Finding(cause, at, what, why.why, why.cure, op, module, dtype, {"error": type(error).__name__})]

    # Weights and buffers

    def _before(self) -> list[Finding]:
        """What is wrong before anything runs."""
        if not self.precision.scales_loss:
            return []
        half = [name for name, p in self.weights.items() if p.dtype is torch.float16]
        if not half:
            return []
        why = WHYS["fp16_parameters"]
        what = f"{len(half)} of {len(self.weights)} trainable parameters are FP16, the first of them {half[0]}."
        module = half[0].rpartition(".")[0]
        return [
            Finding(
                why.cause,
                f"the parameter {half[0]}",
                what,
                why.why,
                why.cure,
                None,
                module,
                "torch.float16",
                {"parameters": half},
            )
        ]

    def _poisoned(self, seen: _Pass) -> list[Finding]:
        """Weights and running statistics that are broken, before this pass or by it, whether they reach the loss or not."""
        for op in seen.recorder.ops:
            poisoned = op.name == "parameter" or (op.name == "buffer" and op.label.endswith(RUNNING))
            if poisoned and op.output.bad:
                return [explain([op], fp32_is_fine=None)]
        for name, buffer in self.model.named_buffers():
            if name.endswith(RUNNING) and not bool(buffer.isfinite().all()):  # this pass has written it
                module = name.rpartition(".")[0]
                op = Op(len(seen.recorder.ops), "buffer", "forward", module, output=stats(buffer), label=name)
                return [explain([op], fp32_is_fine=None)]
        return []

    # Backward

    def _backward(self, seen: _Pass, loss: Tensor, fp32: _Pass) -> list[Finding]:
        if not loss.requires_grad:
            self.notes.append("The loss has no gradient, so that only the forward pass was examined.")
            return []
        if loss.numel() != 1 and (finding := self._unreduced(loss)):
            return [finding]
        recorder, marks = seen.recorder, len(seen.recorder.ops)
        first = self._gradients(seen, loss, self.scale)
        used = self.scale
        if first is not None:
            chain = first.ancestry()
            if not self._of_the_scale(chain):
                return [explain(chain, fp32_is_fine=self._gradients_fine(fp32))]
            overflow, finite = chain[0], self._finite_scale(seen, loss)
            if finite is None:
                return [explain(chain, fp32_is_fine=self._gradients_fine(fp32))]
            used = finite
            del recorder.ops[marks:]
            self._gradients(seen, loss, used)
            if used < 1:
                return [self._too_large(overflow, used)]
            self._calibrating(overflow, used)
        self.used = used
        return self._lost_gradients(seen, fp32)

    def _gradients(self, seen: _Pass, loss: Tensor, scale: float) -> Op | None:
        """Backward of the scaled loss, recorded; the Op of a bad gradient, None if all are finite."""
        self._clear(seen)
        recorder = seen.recorder
        recorder.phase = "backward"
        with recorder:
            (_one(loss) * scale).backward(retain_graph=True)
        bad = []
        for p in self.weights.values():
            if p.grad is not None and not _all_finite(p.grad):
                maker = recorder.maker(_values(p.grad))
                if maker is not None and maker.output.bad:
                    bad.append(maker)
        return min(bad, key=lambda op: op.ancestry()[0].index) if bad else None

    def _of_the_scale(self, chain: list[Op]) -> bool:
        """Whether a smaller scale could cure it: a number went out of range, and was not inf or nan by its nature."""
        return chain[0].phase == "backward" and (
            chain[0].out_of_range or (chain[0].name == "mul" and chain[0].module == "loss")
        )

    def _finite_scale(self, seen: _Pass, loss: Tensor) -> float | None:
        """The largest scale below the one given at which all gradients are finite, halving as the GradScaler does."""
        scale = self.scale / 2
        while scale >= SMALLEST_SCALE:
            self._clear(seen)
            (_one(loss) * scale).backward(retain_graph=True)
            if all(p.grad is None or _all_finite(p.grad) for p in self.weights.values()):
                return scale
            scale /= 2
        return None

    def _unreduced(self, loss: Tensor) -> Finding | None:
        scaled = loss.detach() * self.scale
        if bool(scaled.isfinite().all()) or not bool(loss.isfinite().all()):
            return None
        why = WHYS["loss_unreduced"]
        what = (
            f"The loss has {loss.numel()} {short(loss.dtype)} numbers, |x| up to {loss.detach().abs().max().item():.4g}. Times "
            f"{_power(self.scale)} {int((~scaled.isfinite()).sum())} of them are inf."
        )
        at = f"the loss, before backward, in {short(loss.dtype)}"
        return Finding(why.cause, at, what, why.why, why.cure, "mul", "loss", str(loss.dtype), {"scale": self.scale})

    def _calibrating(self, overflow: Op, used: float) -> None:
        skips = round(math.log2(self.scale / used))
        self.notes.append(
            f"At scale {_power(self.scale)} gradients overflow first in {where(overflow)}. That is healthy: a GradScaler "
            f"skips {skips} step{'s' * (skips > 1)}, halves its scale each time, and goes on at {_power(used)}, where all "
            "gradients are finite."
        )

    def _too_large(self, overflow: Op, used: float) -> Finding:
        why = WHYS["gradient_overflow"]
        true = (overflow.fp32 or overflow.output).largest / self.scale
        what = (
            f"At scale 1 gradients are still inf: the first to leave the range are up to {true:.4g} unscaled. All are finite "
            f"only at scale {_power(used)}."
        )
        return _finding(why, where(overflow), what, overflow, {"finite_at_scale": used})

    def _lost_gradients(self, seen: _Pass, fp32: _Pass) -> list[Finding]:
        """Weights whose gradient is 0 here and not in FP32."""
        if self.precision.compute_dtype is torch.float32:
            return []
        random = seen.recorder.seeded  # then single elements may differ for another reason
        least = NEGLIGIBLE * max((grad.abs().max().item() for grad in fp32.gradients.values()), default=0.0)
        for name, p in self.weights.items():
            true = fp32.gradients.get(name)
            if p.grad is None or true is None:
                continue
            there, zero = true.abs() > least, p.grad.to_dense() == 0
            share = int((zero & there).sum()) / max(1, int(there.sum()))
            if share and (not random or bool(zero.all())):
                self.lost[name] = share
        worst = {name: share for name, share in self.lost.items() if share >= MOST_LOST}
        return [self._underflow(seen, worst, fp32.gradients)] if worst else []

    def _gradients_fine(self, fp32: _Pass) -> bool | None:
        """Whether FP32's gradients are all finite; None where there are none."""
        if not fp32.gradients or self.precision.name == "fp32":
            return None
        return all(_all_finite(grad) for grad in fp32.gradients.values())

    def _underflow(self, seen: _Pass, worst: dict[str, float], reference: dict[str, Tensor]) -> Finding:
        why = WHYS["gradient_underflow"]
        first = next((op for op in seen.recorder.ops if op.phase == "backward" and op.lost >= MOST_LOST), None)
        first = first or max((op for op in seen.recorder.ops if op.phase == "backward"), key=lambda op: op.lost)
        name = max(worst, key=lambda name: worst[name])
        true = reference[name]
        what = (
            f"{len(worst)} of {len(self.weights)} weights lose half of their gradient or more; {name} loses "
            f"{worst[name]:.0%} of it. In FP32 its true gradient is up to {true.abs().max().item():.3g}; this pass was "
            f"at scale {_power(self.used)}. The op above is the first to lose it: {first.lost:.0%} of what FP32 holds is 0."
        )
        suggested = self._suggested(seen)
        if suggested is not None and suggested > self.used:
            cure = (
                f"Train with a GradScaler (fp16-mixed); it may start at {_power(suggested)}: the largest gradient here "
                "then still has a factor of 8 to FP16's limit. Or train in bf16-mixed, which needs no scale."
            )
        else:
            cure = (
                "A larger scale would overflow: the gradients of this model span more than FP16 has. Train in "
                "bf16-mixed, or normalise between the layers."
            )
        evidence = {"lost": worst, "scale": self.used, "suggested_scale": suggested, "op_lost": first.lost}
        return replace(_finding(why, where(first), what, first, evidence), cure=cure)

    def _suggested(self, seen: _Pass) -> float | None:
        if self.precision.compute_dtype is not torch.float16:
            return None
        low = [op for op in seen.recorder.ops if op.phase == "backward" and op.output.dtype is torch.float16]
        largest = max((op.fp32.largest if op.fp32 else op.output.largest for op in low), default=0.0)
        if not largest:
            return None
        room = torch.finfo(torch.float16).max / 8 / (largest / self.used)
        return 2.0 ** max(-24, min(math.floor(math.log2(room)), 100))

    # The whole

    def _room(self, seen: _Pass) -> list[str]:
        """How far a healthy FP16 pass stayed from FP16's limit."""
        if self.precision.compute_dtype is not torch.float16:
            return []
        parts = []
        for phase in ("forward", "backward"):
            low = [op for op in seen.recorder.ops if op.phase == phase and op.output.dtype is torch.float16]
            if low:
                op = max(low, key=lambda op: op.output.largest)
                at = f" at scale {_power(self.used)}" if phase == "backward" else ""
                parts.append(f"{phase}{at} {op.output.largest:.4g} ({op.name} in {place(op.module)})")
        if not parts:
            return ["Nothing was computed in FP16."]
        return [f"The largest FP16 numbers, of 65504: {'; '.join(parts)}."]

    def _notes(self, seen: _Pass) -> list[str]:
        notes = []
        if self.simulated:
            notes.append(
                "No GPU was used: the ops ran on the CPU with CUDA's autocast policy and real "
                f"{short(self.precision.compute_dtype)} numbers. CPU autocast would cast other ops; the kernels of a GPU "
                "add up in another order."
            )
        if seen.recorder.rounded:
            ops = ", ".join(sorted(seen.recorder.rounded))
            notes.append(f"The CPU has no FP16 kernel for {ops}: computed in FP32, and the result rounded to FP16.")
        if seen.error is None and seen.loss is None:
            notes.append(
                "There is no loss, so only the forward pass was examined. Give loss_fn, or a model that returns its loss."
            )
        return notes

    def _result(self, seen: _Pass, findings: list[Finding]) -> Examination:
        first = findings[0].cause if findings else None
        if first is None:
            self.notes = self._room(seen) + self.notes
        state = f"healthy in {self.precision}" if first is None else f"{first} in {self.precision}"
        return Examination(
            subject=self.name,
            state=state,
            findings=tuple(findings),
            notes=tuple(self.notes),
            precision=self.precision.name,
            scale=self.used,
            suggested_scale=None if findings else self._suggested(seen),
            lost=self.lost,
            ops=tuple(op for op in seen.recorder.ops),
        )

    def _clear(self, which: _Pass) -> None:
        for p in which.weights.values():
            p.grad = None

    @contextmanager
    def _fresh(self) -> Iterator[None]:
        """Each pass sees the buffers and the random numbers that the model would have seen next."""
        buffers = [(buffer, buffer.detach().clone()) for buffer in self.model.buffers()]
        with torch.random.fork_rng(_cuda_index(self.device)):
            yield
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)


def _cuda_index(device: torch.device) -> list[int]:
    if device.type != "cuda":
        return []
    return [torch.cuda.current_device() if device.index is None else device.index]


def _finding(why, at: str, what: str, op: Op, evidence: dict) -> Finding:
    return Finding(why.cause, at, what, why.why, why.cure, op.name, op.module, str(op.dtype), evidence)


def _power(scale: float) -> str:
    """A scale as people say it: 65536, 2**34."""
    exponent = math.log2(scale)
    return f"2**{exponent:.0f}" if exponent.is_integer() and not -4 <= exponent <= 17 else f"{scale:g}"


def _one(loss: Tensor) -> Tensor:
    return loss if loss.numel() == 1 else loss.mean()


@contextmanager
def _unchanged(model: nn.Module, device: torch.device) -> Iterator[None]:
    """Gradients, buffers and the random state are as before on leaving."""
    gradients = [(p, p.grad) for p in model.parameters()]
    buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    with ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng(_cuda_index(device)))
        stack.enter_context(torch.enable_grad())
        for p, _ in gradients:
            p.grad = None
        try:
            yield
        finally:
            with torch.no_grad():
                for buffer, before in buffers:
                    buffer.copy_(before)
            for p, grad in gradients:
                p.grad = grad


def _placed(model: nn.Module, device: torch.device, precision: Precision) -> nn.Module:
    """The model on the device with the weights of the precision: itself where it is so already, else a copy."""
    if hasattr(model, "_orig_mod"):
        model = model._orig_mod  # what torch.compile was given
    tensors = [*model.parameters(), *model.buffers()]
    true = precision.param_dtype is not torch.float32
    if all(tensor.device.type == device.type for tensor in tensors) and not true:
        return model
    try:
        model = copy.deepcopy(model)
    except Exception as error:
        raise DoctorError(
            f"The model cannot be copied to {device} ({error}). Move it there yourself, `model.to({str(device)!r})`, and "
            "ask again."
        ) from error
    model = model.to(device)
    return model.to(precision.param_dtype) if true else model


def _to(value: Any, device: torch.device) -> Any:
    return tree_map(lambda leaf: leaf.to(device) if isinstance(leaf, Tensor) else leaf, value)


def _named(value: Any, name: str) -> list[tuple[str, Tensor]]:
    found = []
    for path, leaf in tree_flatten_with_path(value)[0]:
        if _is_float(leaf):
            found.append((name + "".join(str(part) for part in path), leaf))
    return found


def _arguments(inputs: Any) -> tuple[tuple, dict]:
    if isinstance(inputs, dict):
        return (), inputs
    return (tuple(inputs), {}) if isinstance(inputs, tuple | list) else ((inputs,), {})


def _values(grad: Tensor) -> Tensor:
    """The numbers of a gradient, which is sparse for an embedding with sparse=True."""
    return grad._values() if grad.layout is torch.sparse_coo else grad


def _all_finite(grad: Tensor) -> bool:
    return bool(_values(grad).isfinite().all())


def _tensors(output: Any) -> list[Tensor]:
    """The floating-point tensors of what a model returns: nested containers, and objects that hold tensors."""
    found = []
    for leaf in tree_flatten(output)[0]:
        if _is_float(leaf):
            found.append(leaf)
        elif hasattr(leaf, "__dict__") and not isinstance(leaf, Tensor | nn.Module | type):
            found += [value for value in tree_flatten(list(vars(leaf).values()))[0] if _is_float(value)]
    return found


def _is_float(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _is_low(value: Any) -> bool:
    return _is_float(value) and value.dtype in LOW
